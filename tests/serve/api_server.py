"""A stand-in for a Kubernetes API server: lists, watches, bindings, leases, events and patches of a
pod's status, with the faults that a real one and the network between have. Standard library only.

    server = ApiServer(seed=1)
    server.put("nodes", {"metadata": {"name": "node-1"}, ...})
    server.faults.close = 0.1
    ... http://127.0.0.1:{server.port} ...
    server.stop()
"""

import copy
import json
import random
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COLLECTIONS = {
    "/api/v1/nodes": ("nodes", "Node"),
    "/api/v1/pods": ("pods", "Pod"),
    "/api/v1/namespaces": ("namespaces", "Namespace"),
    "/api/v1/services": ("services", "Service"),
    "/api/v1/replicationcontrollers": ("replicationcontrollers", "ReplicationController"),
    "/apis/policy/v1/poddisruptionbudgets": ("poddisruptionbudgets", "PodDisruptionBudget"),
    "/apis/apps/v1/replicasets": ("replicasets", "ReplicaSet"),
    "/apis/apps/v1/statefulsets": ("statefulsets", "StatefulSet"),
}
KINDS = dict(COLLECTIONS.values())


class Faults:
    """Probabilities, unless it says otherwise."""

    def __init__(self):
        self.close = 0.0            # a watch ends after an event
        self.cut = 0.0              # ... in the middle of one
        self.duplicate = 0.0        # an event comes twice
        self.reorder = 0.0          # two neighbouring events change places
        self.delay = 0.0            # an event comes a little later
        self.lose = 0.0             # an event never comes
        self.expire = 0.0           # a watch that begins is told 410
        self.expire_event = 0.0     # a watch is told 410 by an event
        self.fail_list = 0.0        # a list is answered 500
        self.slow_list = 0.0        # a list's body comes in pieces
        self.bind_conflict = 0.0    # a binding is answered 409 although it would do
        self.bind_error = 0.0       # ... 500
        self.bind_refused = ()      # keys of pods whose bindings are answered 500
        self.bind_lost = 0.0        # a binding is made, and its answer never comes
        self.bind_delay_s = 0.0     # how long a binding takes
        self.grace_s = 0.5          # between the deletion of a pod and its end
        self.lease_down = False     # leases are answered 503
        self.down = False           # everything is


class ApiServer:
    def __init__(self, seed=0):
        self.lock = threading.Condition()
        self.random = random.Random(seed)
        self.faults = Faults()
        self.version = 100
        self.oldest = 100           # watches from before that are expired
        self.objects = {name: {} for name, _ in COLLECTIONS.values()}
        self.log = {name: [] for name in self.objects}   # (version, type, object)
        self.leases = {}
        self.events = []
        self.bindings = []          # (pod uid, node, who) of those that were made
        self.attempts = []          # (pod key, node, status)
        self.requests = []          # (method, path)
        self.stopping = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_arguments):
                pass

            def do_GET(self):
                outer.handle(self, "GET")

            def do_POST(self):
                outer.handle(self, "POST")

            def do_PUT(self):
                outer.handle(self, "PUT")

            def do_PATCH(self):
                outer.handle(self, "PATCH")

            def do_DELETE(self):
                outer.handle(self, "DELETE")

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_arguments):
                pass  # a client that goes away is part of the tests

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def stop(self):
        with self.lock:
            self.stopping = True
            self.lock.notify_all()
        self.server.shutdown()
        self.server.server_close()

    # ---- what the tests change ----

    @staticmethod
    def key_of(item):
        metadata = item["metadata"]
        space = metadata.get("namespace")
        return f"{space}/{metadata['name']}" if space else metadata["name"]

    def put(self, collection, item):
        """Adds or replaces an object; gives it a version, and a uid if it is new."""
        with self.lock:
            item = copy.deepcopy(item)
            key = self.key_of(item)
            before = self.objects[collection].get(key)
            self.version += 1
            metadata = item["metadata"]
            metadata["resourceVersion"] = str(self.version)
            if before:
                metadata["uid"] = before["metadata"]["uid"]
            else:
                metadata.setdefault("uid", f"uid-{self.version}")
            item.setdefault("kind", KINDS[collection])
            self.objects[collection][key] = item
            self.log[collection].append((self.version, "MODIFIED" if before else "ADDED",
                                         copy.deepcopy(item)))
            self.lock.notify_all()
            return item

    def remove(self, collection, key):
        with self.lock:
            item = copy.deepcopy(self.objects[collection].pop(key))
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
            self.log[collection].append((self.version, "DELETED", item))
            self.lock.notify_all()

    def change(self, collection, key, change):
        """Calls change(object) on a copy and puts that."""
        with self.lock:
            item = copy.deepcopy(self.objects[collection][key])
            change(item)
            return self.put(collection, item)

    def get(self, collection, key):
        with self.lock:
            return copy.deepcopy(self.objects[collection].get(key))

    def all(self, collection):
        with self.lock:
            return copy.deepcopy(self.objects[collection])

    def compact(self):
        """Watches from any version before now are expired."""
        with self.lock:
            self.oldest = self.version
            for log in self.log.values():
                log.clear()
            self.lock.notify_all()

    # ---- requests ----

    def handle(self, request, method):
        length = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(length)) if length else None
        url = urllib.parse.urlsplit(request.path)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        with self.lock:
            self.requests.append((method, request.path))
        if self.faults.down:
            return self.answer(request, 503, self.status(503, "down"))
        parts = url.path.strip("/").split("/")
        if method == "GET" and url.path in COLLECTIONS:
            collection, kind = COLLECTIONS[url.path]
            if query.get("watch"):
                return self.watch(request, collection, query)
            return self.list(request, collection, kind, query)
        if method == "POST" and parts[-1] == "binding":
            return self.bind(request, f"{parts[3]}/{parts[5]}", body)
        if method == "DELETE" and len(parts) == 6 and parts[4] == "pods":
            return self.delete(request, f"{parts[3]}/{parts[5]}", body)
        if method == "PATCH" and parts[-1] == "status" and parts[4] == "pods":
            return self.patch_status(request, f"{parts[3]}/{parts[5]}", body)
        if method == "POST" and parts[-1] == "events":
            with self.lock:
                self.events.append(body)
            return self.answer(request, 201, body)
        if "leases" in parts:
            return self.lease(request, method, parts, body)
        return self.answer(request, 404, self.status(404, f"no {method} {url.path}"))

    @staticmethod
    def status(code, message):
        return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "message": message}

    def answer(self, request, code, body, pieces=1):
        data = json.dumps(body).encode()
        request.send_response(code)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        size = max(1, (len(data) + pieces - 1) // pieces)
        for at in range(0, len(data), size):
            if at:
                time.sleep(0.005)
            request.wfile.write(data[at:at + size])
            request.wfile.flush()
        return None

    def chance(self, probability):
        with self.lock:
            return probability > 0 and self.random.random() < probability

    @staticmethod
    def selected(item, query):
        selector = query.get("fieldSelector", "")
        phase = (item.get("status") or {}).get("phase", "Pending")
        return f"status.phase!={phase}" not in selector.split(",")

    def list(self, request, collection, kind, query):
        if self.chance(self.faults.fail_list):
            return self.answer(request, 500, self.status(500, "a fault"))
        limit = int(query.get("limit") or 0)
        start = 0
        with self.lock:
            version = self.version
            keys = sorted(k for k, v in self.objects[collection].items()
                          if self.selected(v, query))
            if "continue" in query:
                version, after = query["continue"].split(":", 1)
                version = int(version)
                if version < self.oldest:
                    return self.answer(request, 410, self.status(410, "the mark is too old"))
                start = sum(1 for key in keys if key <= after)
            page = keys[start:start + limit] if limit else keys
            items = [copy.deepcopy(self.objects[collection][key]) for key in page]
        metadata = {"resourceVersion": str(version)}
        if limit and start + limit < len(keys):
            metadata["continue"] = f"{version}:{page[-1]}"
        for item in items:
            item.pop("kind", None)  # items of a list need not name it
        pieces = 7 if self.chance(self.faults.slow_list) else 1
        return self.answer(request, 200, {"kind": kind + "List", "apiVersion": "v1",
                                          "metadata": metadata, "items": items}, pieces)

    def watch(self, request, collection, query):
        version = int(query["resourceVersion"])
        if version < self.oldest or self.chance(self.faults.expire):
            return self.answer(request, 410, self.status(410, "too old resource version"))
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.close_connection = True
        end = time.monotonic() + float(query.get("timeoutSeconds") or 300)
        bookmark = time.monotonic() + 0.5
        try:
            while True:
                with self.lock:
                    while True:
                        if self.stopping or self.faults.down or time.monotonic() > end:
                            return self.last(request)
                        fresh = [e for e in self.log[collection] if e[0] > version]
                        if fresh or time.monotonic() > bookmark or version < self.oldest:
                            break
                        self.lock.wait(0.05)
                    now = self.version
                if version < self.oldest or self.chance(self.faults.expire_event):
                    self.event(request, "ERROR", self.status(410, "too old resource version"))
                    return self.last(request)
                if not self.events_out(request, fresh, query):
                    return None
                if fresh:
                    version = fresh[-1][0]
                if time.monotonic() > bookmark:
                    # Everything up to `now` of this collection has been sent.
                    version = max(version, now)
                    bookmark = time.monotonic() + 0.5
                    self.event(request, "BOOKMARK",
                               {"kind": KINDS[collection],
                                "metadata": {"resourceVersion": str(version)}})
        except OSError:
            return None

    def events_out(self, request, fresh, query):
        """Sends events with their faults; False when the watch is over."""
        out = list(fresh)
        for at in range(len(out) - 1):
            if self.chance(self.faults.reorder):
                out[at], out[at + 1] = out[at + 1], out[at]
        for version, kind, item in out:
            if not self.selected(item, query):
                kind = "DELETED"  # it has left the selection
            if self.chance(self.faults.lose):
                continue
            if self.chance(self.faults.delay):
                time.sleep(0.01)
            if self.chance(self.faults.cut):
                self.event(request, kind, item, cut=True)
                return False
            self.event(request, kind, item)
            if self.chance(self.faults.duplicate):
                self.event(request, kind, item)
            # Not between two that changed places: what was sent late would be lost for good.
            if self.faults.reorder == 0 and self.chance(self.faults.close):
                self.last(request)
                return False
        if self.chance(self.faults.close):
            self.last(request)
            return False
        return True

    @staticmethod
    def event(request, kind, item, cut=False):
        data = json.dumps({"type": kind, "object": item}).encode() + b"\n"
        if cut:
            data = data[:len(data) // 2]
        request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        request.wfile.flush()
        if cut:
            request.connection.close()

    @staticmethod
    def last(request):
        try:
            request.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass

    def bind(self, request, key, body):
        if self.faults.bind_delay_s:
            time.sleep(self.faults.bind_delay_s)
        node = body["target"]["name"]
        code, message = 201, "Success"
        with self.lock:
            pod = self.objects["pods"].get(key)
            uid = body["metadata"].get("uid")
            if self.chance(self.faults.bind_error) or key in self.faults.bind_refused:
                code, message = 500, "a fault"
            elif self.chance(self.faults.bind_conflict):
                code, message = 409, "the object has been modified"
            elif pod is None:
                code, message = 404, f'pods "{key}" not found'
            elif uid and uid != pod["metadata"]["uid"]:
                code, message = 409, "uid in precondition does not match"
            elif pod["spec"].get("nodeName"):
                code, message = 409, f"pod {key} is already assigned to node"
            elif pod["metadata"].get("deletionTimestamp"):
                code, message = 409, f"pod {key} is being deleted"
            self.attempts.append((key, node, code))
            if code == 201:
                self.bindings.append((pod["metadata"]["uid"], node))
                self.change("pods", key, lambda item: item["spec"].update(nodeName=node))
        if code == 201 and self.chance(self.faults.bind_lost):
            request.close_connection = True
            request.connection.close()
            return None
        return self.answer(request, code, self.status(code, message) if code != 201 else
                           {"kind": "Status", "status": "Success", "code": 201})

    def delete(self, request, key, body):
        with self.lock:
            item = self.objects["pods"].get(key)
            if item is None:
                return self.answer(request, 404, self.status(404, "no such pod"))
            uid = ((body or {}).get("preconditions") or {}).get("uid")
            if uid and uid != item["metadata"]["uid"]:
                return self.answer(request, 409, self.status(409, "uid in precondition differs"))
            # It takes a while to end, as pods do.
            self.change("pods", key, lambda item: item["metadata"].update(
                deletionTimestamp="2026-01-01T00:00:01Z"))
        threading.Timer(self.faults.grace_s, self.remove, ("pods", key)).start()
        return self.answer(request, 200, {"kind": "Status", "status": "Success"})

    def patch_status(self, request, key, body):
        with self.lock:
            if key not in self.objects["pods"]:
                return self.answer(request, 404, self.status(404, "no such pod"))

            def merge(item):
                status = item.setdefault("status", {})
                if "nominatedNodeName" in body["status"]:
                    status["nominatedNodeName"] = body["status"]["nominatedNodeName"]
                conditions = status.setdefault("conditions", [])
                for new in body["status"].get("conditions", []):
                    conditions[:] = [c for c in conditions if c["type"] != new["type"]] + [new]

            item = self.change("pods", key, merge)
        return self.answer(request, 200, item)

    def lease(self, request, method, parts, body):
        if self.faults.lease_down:
            return self.answer(request, 503, self.status(503, "leases are down"))
        with self.lock:
            space = parts[4]
            name = parts[6] if len(parts) > 6 else body["metadata"]["name"]
            key = f"{space}/{name}"
            held = self.leases.get(key)
            if method == "GET":
                if held is None:
                    return self.answer(request, 404, self.status(404, "no such lease"))
                return self.answer(request, 200, held)
            if method == "POST" and held is not None:
                return self.answer(request, 409, self.status(409, "there is one already"))
            if method == "PUT":
                if held is None:
                    return self.answer(request, 404, self.status(404, "no such lease"))
                if body["metadata"].get("resourceVersion") != held["metadata"]["resourceVersion"]:
                    return self.answer(request, 409, self.status(409, "it has been modified"))
            self.version += 1
            body = copy.deepcopy(body)
            body["metadata"]["resourceVersion"] = str(self.version)
            self.leases[key] = body
            return self.answer(request, 201 if method == "POST" else 200, body)
