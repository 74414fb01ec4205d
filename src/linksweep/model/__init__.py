"""The frozen Model of a robot: how it is put together, checked and named."""
