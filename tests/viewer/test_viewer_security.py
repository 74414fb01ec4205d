"""Attacks on the viewer: pages of other origins, other processes without the token, archives, entities, huge images."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from abuse_helpers import in_process

import linksweep as ls

try:
    import resource
except ImportError:
    resource = None

viser = pytest.importorskip("viser", reason="the viewer is built on viser: pip install viser")
websockets = pytest.importorskip("websockets")

from linksweep.viewer import (  # noqa: E402
    Scene,
    Viewer,
    meshes,
    server,
    show,
)


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    with show(ls.robots.planar(3), port=0, browser=False) as one:
        yield one


def received(viewer: Viewer, path: str | None = None, **headers: str) -> int:
    """Connect as a page would; how many bytes of the scene came. Raises InvalidStatus where that is refused."""
    url = urlsplit(viewer.url)
    host = headers.pop("Host", url.netloc)
    origin = headers.pop("Origin", f"http://{host}")

    async def connect() -> int:
        async with websockets.connect(
            f"ws://{host}{url.path.rstrip('/') if path is None else path}", host=url.hostname, port=url.port,
            origin=origin or None, subprotocols=[f"viser-v{viser.__version__}"], additional_headers=headers,
            compression=None, max_size=None, proxy=None,
        ) as connection:  # fmt: skip
            return len(await asyncio.wait_for(connection.recv(), 60))

    return asyncio.run(connect())


def status(viewer: Viewer, path: str, **headers: str) -> int:
    """Of a plain request."""
    url = urlsplit(viewer.url)
    connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=60)
    try:
        connection.putrequest("GET", path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def token(viewer: Viewer) -> str:
    return urlsplit(viewer.url).path.strip("/")


def test_its_own_page_is_served(viewer: Viewer):
    port = viewer.scene.server.get_port()
    assert received(viewer) > 100
    assert received(viewer, Origin="") > 100  # no browser
    assert received(viewer, Host=f"localhost:{port}") > 100
    assert received(viewer, Host="localhost:9000") > 100  # forwarded by ssh -L 9000:...
    assert received(viewer, path=f"/{token(viewer)}/") > 100
    for path in (f"/{token(viewer)}", f"/{token(viewer)}/", f"/{token(viewer)}/index.html", f"/{token(viewer)}/?a=1"):
        assert status(viewer, path) == 200
    assert status(viewer, f"/{token(viewer)}/nothing") == 404
    assert status(viewer, f"/{token(viewer)}/../../etc/passwd") == 404


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example", "https://evil.example", "http://localhost:1", "http://127.0.0.1", "null", "file://",
        "http://127.0.0.1.evil.example", "http://evil.example:{port}", "http://{host}@evil.example", "nonsense",
        "http://{host}.", "http://[", "chrome-extension://abcdef",
    ],
)  # fmt: skip
def test_pages_of_other_origins_are_refused(viewer: Viewer, origin: str):
    """Even one that has got hold of the token."""
    host = urlsplit(viewer.url).netloc
    origin = origin.format(host=host, port=host.rpartition(":")[2])
    with pytest.raises(websockets.InvalidStatus) as refused:
        received(viewer, Origin=origin)
    assert refused.value.response.status_code == 403
    assert status(viewer, f"/{token(viewer)}/", Origin=origin) == 403


@pytest.mark.parametrize(
    "path", ["", "/", "/index.html", "/{wrong}", "/{short}", "/{long}", "/x/{token}", "/?{token}", "/%2e/{token}", "//"]
)
def test_requests_without_the_token_are_refused(viewer: Viewer, path: str):
    own = token(viewer)
    path = path.format(token=own, wrong="A" * len(own), short=own[:-1], long=f"{own}A")
    with pytest.raises(websockets.InvalidStatus) as refused:
        received(viewer, path=path)
    assert refused.value.response.status_code == 403
    assert status(viewer, path or "/") == 403


def test_names_of_other_machines_are_refused(viewer: Viewer):
    """A page whose own name leads to this machine (DNS rebinding) is of the same origin."""
    port = viewer.scene.server.get_port()
    for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example"):
        with pytest.raises(websockets.InvalidStatus):
            received(viewer, Host=host)
    for host in ("evil.example", "", "evil@127.0.0.1", "[", "127.0.0.1 evil.example"):
        assert status(viewer, f"/{token(viewer)}/", Host=host) == 403


def test_a_refused_connection_neither_reads_nor_writes(viewer: Viewer):
    before, clients = viewer.q.copy(), len(viewer.scene.server.get_clients())
    for _ in range(5):
        with pytest.raises(websockets.InvalidStatus):
            received(viewer, Origin="http://evil.example")
    assert len(viewer.scene.server.get_clients()) == clients and np.array_equal(viewer.q, before)


def test_tokens_are_new_for_every_server(viewer: Viewer):
    with Scene(port=0) as other:
        own = urlsplit(other.url).path.strip("/")
        assert len(own) >= 20 and own != token(viewer)
        with pytest.raises(websockets.InvalidStatus):
            received(viewer, path=f"/{own}")


def test_a_server_for_everybody_wants_the_token_too():
    with show(ls.robots.planar(1), host="0.0.0.0", port=0, browser=False) as wide:
        port = wide.scene.server.get_port()
        assert received(wide, Host=f"robot.lab:{port}") > 100
        with pytest.raises(websockets.InvalidStatus):
            received(wide, path="/")
        with pytest.raises(websockets.InvalidStatus):
            received(wide, Host=f"robot.lab:{port}", Origin="http://evil.example")


def test_a_server_that_cannot_be_guarded_is_not_started(monkeypatch: pytest.MonkeyPatch):
    """Should viser start its server otherwise one day."""
    monkeypatch.setattr(server.Guard, "guarded", lambda self, answer: answer)
    with pytest.raises(ls.BackendError, match="protected"):
        Scene(port=0)


def test_other_servers_are_left_alone():
    """`websockets.serve` is as it was, and a server of somebody else is not guarded."""
    from websockets.asyncio import server as module

    serve = module.serve
    with Scene(port=0):
        assert module.serve is serve

    def own(connection: Any, request: Any) -> None:
        return None

    guard = server.Guard("127.0.0.1")
    with server._guarded_by(guard), contextlib.suppress(RuntimeError):  # there is no event loop
        module.serve(lambda connection: asyncio.sleep(0.0), "127.0.0.1", 0, process_request=own)
    assert not guard.in_place


# ---- meshes that become much larger than their files, or that are no meshes ----------------------------------------

COLLADA = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset><library_geometries><geometry id="tri"><mesh>
<source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 2 0</float_array><technique_common>
<accessor source="#pa" count="3" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="{count}"><input semantic="VERTEX" source="#v" offset="0"/><p>{indices}</p></triangles>
</mesh></geometry></library_geometries>{nodes}<library_visual_scenes><visual_scene id="s">{scene}
</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""
DRAWN = '<node><instance_geometry url="#tri"/></node>'
ENTITIES = '<!DOCTYPE a [<!ENTITY a "0 0 0 "><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'


def collada(count: int = 1, nodes: str = "", scene: str = DRAWN) -> str:
    return COLLADA.format(count=count, indices="0 1 2 " * count, nodes=nodes, scene=scene)


def declared(encoding: str) -> str:
    """A file with a document type that says it has this encoding."""
    text = collada().replace("utf-8", encoding, 1)
    return text.replace("?>\n", f"?>{ENTITIES}\n", 1)


def multiplied() -> str:
    """Nodes of ten nodes of ten nodes ...: 10^12 triangles."""
    levels = (
        "".join(f'<node id="n{k}">' + f'<instance_node url="#n{k + 1}"/>' * 10 + "</node>" for k in range(12))
        + '<node id="n12"><instance_geometry url="#tri"/></node>'
    )
    return collada(nodes=f"<library_nodes>{levels}</library_nodes>", scene='<node><instance_node url="#n0"/></node>')


def zipped(name: str, size: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as file:
        for _ in range(size >> 20):
            file.write(b"v 0 0 0\n" * (1 << 17))
    return out.getvalue()


def gltf(accessor: dict[str, Any], meshes: int = 1, nodes: int = 1, **more: Any) -> bytes:
    tree: dict[str, Any] = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": list(range(nodes))}],
        "nodes": [{"mesh": k % meshes} for k in range(nodes)],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}] * meshes,
        "accessors": [{"componentType": 5126, "type": "VEC3", **accessor}], **more,
    }  # fmt: skip
    return json.dumps(tree).encode()


def image(width: int, height: int) -> bytes:
    """A PNG of one colour: some bytes for thousands of pixels."""
    from PIL import Image

    out = io.BytesIO()
    Image.new("P", (width, height)).save(out, "PNG")
    return out.getvalue()


TRIANGLE = "mtllib m.mtl\nusemtl a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n"
BUFFER = {"buffers": [{"byteLength": 900_000, "uri": "data:application/octet-stream;base64," + "AAAA" * 300_000}]}
VIEW = {**BUFFER, "bufferViews": [{"buffer": 0, "byteLength": 900_000}]}
ATTACKS: dict[str, Any] = {
    "bomb.zip": lambda: zipped("m.obj", 40 << 20),
    "bomb.zae": lambda: zipped("m.dae", 40 << 20),
    "bomb.3mf": lambda: zipped("3D/3dmodel.model", 40 << 20),
    "bomb.tar.gz": lambda: gzip.compress(b"v 0 0 0\n" * (5 << 20)),
    "bomb.bz2": lambda: b"BZh9" + bytes(100),
    "zip.dae": lambda: zipped("m.dae", 40 << 20),
    "behind_text.dae": lambda: collada().encode() + zipped("m.dae", 40 << 20),
    "entities.dae": lambda: declared("utf-8").encode(),
    "utf8_bom.dae": lambda: declared("utf-8").encode("utf-8-sig"),
    "utf16.dae": lambda: declared("utf-16").encode("utf-16"),
    "utf16le.dae": lambda: declared("utf-16").encode("utf-16-le"),
    "utf16be.dae": lambda: declared("utf-16be").encode("utf-16-be"),
    "utf16_without_entities.dae": lambda: collada().replace("utf-8", "utf-16").encode("utf-16"),
    "utf32.dae": lambda: declared("utf-32").encode("utf-32"),
    "utf7.dae": lambda: declared("utf-7").encode().replace(b"<!", b"+ADwAIQ-"),
    "ebcdic.dae": lambda: declared("cp037").encode("cp037"),
    "ibm_declared.dae": lambda: declared("cp037").encode(),
    "multiplied.dae": lambda: multiplied().encode(),
    "cyclic.dae": lambda: multiplied().replace('url="#tri"', 'url="#n0"').replace("geometry u", "node u").encode(),
    "repeated.dae": lambda: collada(20_000, scene=DRAWN * 10_000).encode(),
    "deep.dae": lambda: collada(scene="<node>" * 100_000 + "</node>" * 100_000).encode(),
    "zeros.gltf": lambda: gltf({"count": 3 * 10**9}),
    "negative.gltf": lambda: gltf({"count": -3}),
    "again.gltf": lambda: gltf({"count": 75_000, "bufferView": 0}, 1000, 1000, **VIEW),
    "instances.gltf": lambda: gltf({"count": 75_000, "bufferView": 0}, 1, 10_000, **VIEW),
    "vertices.ply": lambda: b"ply\nformat ascii 1.0\nelement vertex 9000000000\nproperty float x\nend_header\n",
    "faces.ply": lambda: (
        b"ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
        b"property float z\nelement face 4000000000\nproperty list uchar int vertex_indices\nend_header\n" + bytes(64)
    ),
    "claims.off": lambda: b"OFF\n4000000000 4000000000 0\n0 0 0\n",
}  # fmt: skip


def read_attacks(folder: str) -> None:
    """Print, for each attack, what became of it and how much more memory is resident at the most."""
    assert resource is not None
    meshes.read_mesh(Path(folder) / "good.dae")
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    for name in ATTACKS:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            found = f"{sum(len(surface.faces) for surface in meshes.read_mesh(Path(folder) / name))} triangles"
        except meshes.MeshError as error:
            found = f"refused: {error}"
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(json.dumps([name, found, more >> 10]), flush=True)


@pytest.mark.skipif(resource is None, reason="memory is measured on POSIX systems")
@pytest.mark.slow
def test_meshes_that_are_attacks_are_refused_and_stay_small(tmp_path: Path):
    pytest.importorskip("collada", reason="COLLADA is read by pycollada")
    for name, make in ATTACKS.items():
        (tmp_path / name).write_bytes(make())
    (tmp_path / "good.dae").write_text(collada())
    lines = [json.loads(line) for line in in_process(read_attacks, str(tmp_path)).splitlines()]
    assert [name for name, _, _ in lines] == list(ATTACKS)
    wrong = [line for line in lines if not line[1].startswith("refused") or line[2] > 300]
    assert wrong == []


def test_what_a_mesh_names_is_a_small_file_beside_it(tmp_path: Path):
    """Devices would never end, pipes would wait for ever, and other files are none of its business."""
    folder = tmp_path / "deep" / "meshes"
    folder.mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(image(4, 4))
    (folder.parent / "textures").mkdir()
    (folder.parent / "textures" / "a.png").write_bytes(image(4, 4))
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/dev/zero")
    finds = meshes._resolver(folder / "m.obj")
    assert finds.get("../textures/a.png") == image(4, 4)
    for name in (
        "/dev/zero",
        "pipe",
        "link",
        "../../secret.png",
        "/etc/passwd",
        "nothing",
        "",
        ".",
        "../../../../dev/zero",
    ):
        with pytest.raises(FileNotFoundError):
            finds.get(name)
        (folder / "m.obj").write_text(TRIANGLE.replace("m.mtl", name))
        assert sum(len(surface.faces) for surface in meshes.read_mesh(folder / "m.obj")) == 1
    for name in ("pipe", "link"):
        (folder / f"{name}.stl").symlink_to(folder / name)
        with pytest.raises(meshes.MeshError):
            meshes.read_mesh(folder / f"{name}.stl")


def test_images_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "m.obj").write_text(TRIANGLE)
    (tmp_path / "m.mtl").write_text("newmtl a\nmap_Kd a.png\n")
    (tmp_path / "a.png").write_bytes(image(64, 64))
    assert meshes.read_mesh(tmp_path / "m.obj")[0].glb is not None
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    monkeypatch.setattr(meshes, "MOST_PIXELS", 64 * 64 - 1)
    with contextlib.suppress(meshes.MeshError):
        assert meshes.read_mesh(tmp_path / "m.obj")[0].glb is None  # drawn without it
    monkeypatch.setattr(meshes, "MOST_PIXELS", 64 * 64)
    monkeypatch.setattr(meshes, "_check_count", lambda count: monkeypatch.setattr(meshes, "MOST_PIXELS", 1000))
    with pytest.raises(meshes.MeshError, match="pixels"):
        meshes.read_mesh(tmp_path / "m.obj")
    assert limit == Image.MAX_IMAGE_PIXELS
