#!/usr/bin/python3
"""A camera for tests: GStreamer's RTSP server, which loops clips.

usage: rtsp_server.py PORT [auth=USER:PASSWORD] [tls=FOLDER] [tell=pictures] NAME=CLIP ...

PORT 0: the kernel chooses. With tls, which needs auth, it speaks rtsps, with a certificate for
127.0.0.1 that it puts into FOLDER/ca.pem. A CLIP is elementary: .h264 or .h265 whose access units
begin with a delimiter, or .mjpeg. What happens is said line by line on standard output: "ready
PORT", then "play NAME" and "teardown NAME" for each client; with tell=pictures also "picture CLIP
NUMBER TIME" for each picture that is sent, by the machine's monotonic clock in nanoseconds. It ends
with its standard input.
"""
import sys
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gio, GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

FPS = 15
PATIENCE_S = 60
# Ending: where a picture begins, its caps, what makes packets of it.
KINDS = {
    "h264": (b"\0\0\0\1\x09", "video/x-h264,stream-format=byte-stream,alignment=au",
             "h264parse ! rtph264pay config-interval=-1"),
    "h265": (b"\0\0\0\1\x46\x01", "video/x-h265,stream-format=byte-stream,alignment=au",
             "h265parse ! rtph265pay config-interval=-1"),
    "mjpeg": (b"\xff\xd8\xff", f"image/jpeg,framerate={FPS}/1", "jpegparse ! rtpjpegpay"),
}


def say(*words):
    """A line at once: clients have threads of their own."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Loop(GstRtspServer.RTSPMediaFactory):
    """All clients of a clip watch one pipeline, so most join between two key pictures."""

    def __init__(self, path, tells_pictures):
        super().__init__()
        self.path, self.tells_pictures = path, tells_pictures
        start, caps, pay = KINDS[path.rsplit(".", 1)[1]]
        with open(path, "rb") as clip:
            self.pictures = [start + rest for rest in clip.read().split(start) if rest]
        self.set_shared(True)
        self.set_launch(f"( appsrc name=clip is-live=true do-timestamp=true format=time "
                        f"caps={caps} ! {pay} name=pay0 pt=96 )")
        self.connect("media-configure", self.configure)

    def configure(self, _factory, media):
        source = media.get_element().get_child_by_name("clip")
        number = 0

        def push():
            nonlocal number
            picture = Gst.Buffer.new_wrapped(self.pictures[number % len(self.pictures)])
            picture.duration = Gst.SECOND // FPS
            if self.tells_pictures:
                say("picture", self.path, number % len(self.pictures), time.monotonic_ns())
            number += 1
            source.emit("push-buffer", picture)
            return True  # a refusal passes: clients that come while others go share what goes on

        timer = GLib.timeout_add(1000 // FPS, push)
        media.connect("unprepared", lambda _media: GLib.source_remove(timer))


def require_password(server, credentials, folder):
    user, password = credentials.split(":", 1)
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    auth.add_digest(user, password, token)
    if folder:
        sys.dont_write_bytecode = True
        from answers import certified
        certified(folder)
        auth.set_tls_certificate(Gio.TlsCertificate.new_from_files(folder + "/ca.pem",
                                                                   folder + "/key.pem"))
    server.set_auth(auth)


def allow_viewers(factory):
    rights = "viewer,media.factory.access=(bool)true,media.factory.construct=(bool)true"
    factory.add_role_from_structure(Gst.Structure.from_string(rights)[0])


def on_client(_server, client):
    client.connect("play-request", lambda _client, context: say("play", context.uri.abspath[1:]))
    client.connect("teardown-request",
                   lambda _client, context: say("teardown", context.uri.abspath[1:]))


def main():
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_service(sys.argv[1])
    server.set_address("127.0.0.1")
    server.connect("client-connected", on_client)
    words = dict(word.split("=", 1) for word in sys.argv[2:])
    credentials, folder = words.pop("auth", None), words.pop("tls", None)
    if credentials:
        require_password(server, credentials, folder)
    tells_pictures = words.pop("tell", None) == "pictures"
    for name, path in words.items():
        factory = Loop(path, tells_pictures)
        if credentials:
            allow_viewers(factory)
        server.get_mount_points().add_factory("/" + name, factory)
    end = time.monotonic() + PATIENCE_S
    while not server.attach(None):  # a port of before may be a client's for a moment
        if time.monotonic() > end:
            sys.exit(f"rtsp_server.py: port {sys.argv[1]} is taken")
        time.sleep(0.1)
    loop = GLib.MainLoop()
    GLib.io_add_watch(0, GLib.IOCondition.HUP, lambda *_: loop.quit())
    say("ready", server.get_bound_port())
    loop.run()


main()
