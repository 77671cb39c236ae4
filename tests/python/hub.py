"""A JupyterHub on the loopback whose only user has a server that its REST interface has started."""
import json
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

CONFIGURATION = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.should_start = True
c.JupyterHub.cleanup_servers = True
c.JupyterHub.authenticator_class = "jupyterhub.auth.DummyAuthenticator"
c.JupyterHub.spawner_class = "jupyterhub.spawner.SimpleLocalProcessSpawner"
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/{{username}}"
c.Spawner.cmd = ["{python}", "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"]
c.Spawner.environment = {environment}
c.Spawner.start_timeout = 100
c.Spawner.http_timeout = 100
c.JupyterHub.services = [{{"name": "test", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [{{"name": "test", "services": ["test"],
                            "scopes": ["admin:users", "admin:servers", "access:servers"]}}]
"""
LIMIT_S = 120


def free_ports(count):
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Hub:
    def __init__(self, folder, environment):
        self.folder, self.token = folder, secrets.token_hex(16)
        self.environment = {**environment, "NODE_PATH": "/usr/share/nodejs"}  # another node than Debian's may be first
        (folder / "guest").mkdir()

    def __enter__(self):
        port, hub, proxy = free_ports(3)
        self.url = f"http://127.0.0.1:{port}"
        file = self.folder / "jupyterhub_config.py"
        file.write_text(CONFIGURATION.format(port=port, hub=hub, proxy=proxy, folder=self.folder, python=sys.executable,
                                             token=self.token, environment=self._of_the_server()))
        self.log = open(self.folder / "hub.log", "w+")
        self.process = subprocess.Popen([sys.executable, "-m", "jupyterhub", "-f", file], cwd=self.folder,
                                        env=self.environment, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        try:
            self._wait("the hub", lambda: self.ask("GET", "/hub/api/"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def _of_the_server(self):
        """A server has the variables of the hub by name only."""
        kept = {name: value for name, value in self.environment.items()
                if name.startswith(("JUPYTER_", "IPYTHON", "MPL", "OMP_", "PYTHON", "LD_LIBRARY"))}
        return {**kept, "JUPYTERHUB_SINGLEUSER_APP": "notebook.notebookapp.NotebookApp"}

    def __exit__(self, *_):
        self.process.terminate()  # it ends the server and the proxy
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, headers={"Authorization": f"token {self.token}"},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            text = answer.read()
        return json.loads(text) if text else {}

    def start_server(self):
        self.ask("POST", "/hub/api/users/guest")
        self.ask("POST", "/hub/api/users/guest/server")
        self._wait("the server", lambda: self.ask("GET", "/hub/api/users/guest")["servers"][""]["ready"])
        self._wait("its kernels", lambda: self.ask("GET", "/user/guest/api/kernels") == [])

    def execute(self, cells):
        """Runs the code cells in a kernel of the server; returns them with their outputs."""
        from tornado.ioloop import IOLoop

        kernel = self.ask("POST", "/user/guest/api/kernels", {"name": "python3"})["id"]
        return IOLoop().run_sync(lambda: self._execute(kernel, cells), timeout=LIMIT_S + 60)

    async def _execute(self, kernel, cells):
        from tornado.httpclient import HTTPRequest
        from tornado.websocket import websocket_connect

        url = self.url.replace("http", "ws", 1) + f"/user/guest/api/kernels/{kernel}/channels"
        channel = await websocket_connect(HTTPRequest(url, headers={"Authorization": f"token {self.token}"}),
                                          max_message_size=64 << 20)
        done = []
        for cell in cells:
            if cell["cell_type"] == "code":
                done.append({"outputs": await self._outputs(channel, "".join(cell["source"]))})
        channel.close()
        return done

    async def _outputs(self, channel, source):
        name = secrets.token_hex(8)
        header = {"msg_id": name, "msg_type": "execute_request", "session": "test", "username": "guest", "version": "5.3"}
        content = {"code": source, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        await channel.write_message(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "buffers": [],
                                                "content": content, "channel": "shell"}))
        outputs, ends = [], set()
        while ends != {"idle", "reply"}:
            message = await channel.read_message()
            assert message is not None, "the server has closed the connection"
            message = json.loads(message)
            if message["parent_header"].get("msg_id") != name:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind in ("stream", "display_data", "execute_result", "error"):
                outputs.append({"output_type": kind, **content})
            if kind == "execute_reply":
                ends.add("reply")
            if kind == "status" and content["execution_state"] == "idle":
                ends.add("idle")
        return outputs

    def _wait(self, what, is_there):
        last = time.monotonic() + LIMIT_S
        while time.monotonic() < last and self.process.poll() is None:
            try:
                if is_there():
                    return
            except (OSError, KeyError, ValueError):
                pass
            time.sleep(0.2)
        self.log.flush()
        raise AssertionError(f"{what} of JupyterHub did not come:\n{(self.folder / 'hub.log').read_text()}")
