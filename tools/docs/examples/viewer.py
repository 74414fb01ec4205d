# %% setup
import numpy as np

import linksweep as ls
from linksweep import viewer

robot = ls.robots.puma560()
# %% Robot.show
# shown.url is where the page is
shown = robot.show(np.zeros(6), browser=False)
shown.q = [0.5, -0.8, 0.3, 0.2, 0.6, 0.0]  # the robot moves in the page
shown.close()
# %% viewer.show
shown = viewer.show(robot, np.zeros(6), browser=False)
shown.close()
# %% viewer.show_run
run = ls.simulate(robot, np.zeros(6), duration=0.1)
shown = viewer.show_run(run, browser=False)
shown.seek(0.05)
shown.close()
# %% viewer.Viewer
with_layers = robot.show(np.zeros(6), browser=False)
with_layers.show_layer("inertia")
with_layers.close()
type(with_layers).__name__
# %% viewer.Scene, viewer.ShownRobot
scene = viewer.Scene()
one = scene.add(robot)
one.q = np.full(6, 0.2)
scene.close()
# %% viewer.LAYERS
list(viewer.LAYERS)[:4]
# %% viewer.Box
viewer.Box((0.1, 0.2, 0.3))
# %% viewer.Capsule
viewer.Capsule(radius=0.05, length=0.4)
# %% viewer.Cylinder
viewer.Cylinder(radius=0.05, length=0.4)
# %% viewer.Ellipsoid
viewer.Ellipsoid((0.1, 0.2, 0.3))
# %% viewer.Sphere
viewer.Sphere(0.1)
# %% viewer.Triangles
corner = viewer.Triangles(np.eye(3), np.array([[0, 1, 2]]))
corner.faces
