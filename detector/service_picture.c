/* Pictures of cameras: the newest frame as JPEG, once, or again and again for a browser's <img>
 * (MJPEG).
 *
 * A viewer of a stream is sent the next part only when it has read the last one, and then gets the
 * newest frame. So a slow viewer sees fewer frames, holds one part, and slows no other client down;
 * all viewers of the same picture share one JPEG.
 */
#include "detector/service_int.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define BOUNDARY "frame"

enum { STREAMS_MAX = 16 };

/* What a viewer gets to see now. */
struct view {
    struct frame *frame;
    const struct image_boxes *boxes; /* NULL: none */
    struct image_shape shape;
};

static void end_viewer(struct viewer *viewer)
{
    web_exchange_set(viewer->exchange, NULL);
    DL_DELETE(viewer->service->viewers, viewer);
    viewer->service->streams -= viewer->wanted.is_stream;
    free(viewer);
}

/* False: the camera is not there, or no frame of it. */
static bool find_view(const struct viewer *viewer, struct view *ret)
{
    const struct camera_question *wanted = &viewer->wanted;
    const struct image_store *images = viewer->service->images;
    const struct subscription *subscription =
        worker_find(viewer->service->worker, wanted->identifier);

    ret->frame = image_newest(images, wanted->identifier, wanted->source);
    if (subscription == NULL || ret->frame == NULL) {
        return false;
    }
    ret->boxes = wanted->has_boxes ? image_boxes(images, wanted->identifier, wanted->source) : NULL;
    image_shape(&ret->shape, ret->frame, wanted->is_cropped ? &subscription->crop : NULL,
                wanted->width);
    return true;
}

/* Of BATON_EBUSY, service_picture_made() brings it. */
static int ask(struct viewer *viewer, const struct view *view, const struct encoding **ret,
               struct baton_error *reterr)
{
    int rc =
        image_ask(viewer->service->images, view->frame, &view->shape, view->boxes, ret, reterr);

    viewer->awaited = rc == BATON_EBUSY ? *ret : NULL;
    return rc;
}

/* ---- One picture ----------------------------------------------------------------------------- */

/* A cache may keep a picture but must ask again each time: the camera has newer ones. A 304 has no
 * length: it would be the picture's, which is not known. */
static void answer_image(struct viewer *viewer, const struct encoding *image)
{
    char headers[160];
    struct web_answer answer = {.status = image != NULL ? 200 : 304, .headers = headers};
    struct web_exchange *exchange = viewer->exchange;

    (void)snprintf(headers, sizeof(headers), "cache-control: no-cache\r\netag: %s\r\n",
                   viewer->tag);
    if (image != NULL) {
        answer.type = "image/jpeg";
        answer.body = image->jpeg;
        answer.bytes = image->bytes;
        viewer->service->images_served++;
    }
    end_viewer(viewer);
    web_answer(exchange, &answer);
}

static void refuse(struct viewer *viewer, unsigned status, const char *reason)
{
    struct web_exchange *exchange = viewer->exchange;

    end_viewer(viewer);
    web_refuse(exchange, status, reason);
}

static void refuse_failed(struct viewer *viewer, const struct baton_error *error)
{
    refuse(viewer, error->code == BATON_EUNAVAILABLE ? 503 : 500, error->message);
}

/* Pictures of another run of this program need other tags, and so do other shapes. */
static void set_tag(struct viewer *viewer, const struct view *view)
{
    const struct image_shape *shape = &view->shape;

    (void)snprintf(viewer->tag, sizeof(viewer->tag), "\"%llx-%llx-%x.%x.%x.%x.%x-%llx\"",
                   (unsigned long long)viewer->service->started_at.ns,
                   (unsigned long long)view->frame->id, (unsigned)shape->rect[0],
                   (unsigned)shape->rect[1], (unsigned)shape->rect[2], (unsigned)shape->rect[3],
                   (unsigned)shape->width,
                   view->boxes != NULL ? (unsigned long long)view->boxes->number : 0);
}

static void begin_image(struct viewer *viewer)
{
    const struct web_head *head = &web_exchange_request(viewer->exchange)->head;
    const char *known = web_header(head, "if-none-match");
    const struct encoding *image;
    struct baton_error error;
    struct view view;
    int rc;

    if (!find_view(viewer, &view)) {
        refuse(viewer, 404,
               viewer->wanted.source == IMAGE_SNAPSHOT
                   ? "no snapshot of this camera has arrived yet"
                   : "no frame of this camera has arrived yet");
        return;
    }
    set_tag(viewer, &view);
    if (known != NULL && question_has_tag(known, viewer->tag)) {
        answer_image(viewer, NULL);
        return;
    }
    rc = ask(viewer, &view, &image, &error);
    if (rc == 0) {
        answer_image(viewer, image);
    } else if (rc != BATON_EBUSY) {
        refuse_failed(viewer, &error);
    }
}

/* ---- Streams --------------------------------------------------------------------------------- */

static void send_part(struct viewer *viewer, const struct encoding *image)
{
    char head[128];
    int bytes = snprintf(
        head, sizeof(head),
        "--" BOUNDARY "\r\nContent-Type: image/jpeg\r\nContent-Length: %zu\r\n\r\n", image->bytes);

    viewer->is_reading = false;
    viewer->service->parts_served++;
    web_part(viewer->exchange, head, (size_t)bytes);
    web_part(viewer->exchange, image->jpeg, image->bytes);
    web_part(viewer->exchange, "\r\n", 2);
}

/* Sends the newest frame, if the viewer has not had it and can take it. */
static void show(struct viewer *viewer)
{
    const struct encoding *image;
    struct baton_error error;
    struct view view;

    if (!viewer->is_reading || viewer->awaited != NULL || !find_view(viewer, &view) ||
        view.frame->id == viewer->number) {
        return;
    }
    viewer->number = view.frame->id; /* a refused frame is skipped: another one follows */
    if (ask(viewer, &view, &image, &error) == 0) {
        send_part(viewer, image);
    }
}

static void begin_stream(struct viewer *viewer)
{
    struct web_exchange *exchange = viewer->exchange;

    if (viewer->service->streams > STREAMS_MAX) {
        refuse(viewer, 503, "too many look at streams; ask for an image, or again later");
        return;
    }
    if (web_exchange_request(exchange)->is_head) { /* the head is the whole answer */
        end_viewer(viewer);
    }
    web_begin(exchange,
              &(struct web_answer){.status = 200,
                                   .type = "multipart/x-mixed-replace; boundary=" BOUNDARY,
                                   .headers = "cache-control: no-store\r\n"});
}

/* ---- Both ------------------------------------------------------------------------------------ */

static const char *missing_source(const struct subscription *subscription, enum image_source source)
{
    if (subscription == NULL) {
        return "no such subscription";
    }
    if (source == IMAGE_STREAM && subscription->rtsp_url[0] == '\0') {
        return "this subscription has no stream: its rtspUrl is empty";
    }
    return source == IMAGE_SNAPSHOT && subscription->snapshot_url == NULL
               ? "this subscription has no snapshots: it names no snapshotUrl"
               : NULL;
}

void service_picture_begin(struct service *service, const struct camera_question *wanted,
                           struct web_exchange *exchange)
{
    const char *missing =
        missing_source(worker_find(service->worker, wanted->identifier), wanted->source);
    struct viewer *viewer = missing == NULL ? calloc(1, sizeof(*viewer)) : NULL;

    if (viewer == NULL) {
        web_refuse(exchange, missing != NULL ? 404 : 503,
                   missing != NULL ? missing : "out of memory");
        return;
    }
    viewer->service = service;
    viewer->exchange = exchange;
    viewer->wanted = *wanted;
    web_exchange_set(exchange, viewer);
    DL_APPEND(service->viewers, viewer);
    service->streams += wanted->is_stream;
    if (wanted->is_stream) {
        begin_stream(viewer);
    } else {
        begin_image(viewer);
    }
}

/* Only of a stream: the client has read all that was sent. */
void service_picture_drained(void *userdata, struct web_exchange *exchange)
{
    struct viewer *viewer = web_exchange_get(exchange);

    (void)userdata;
    if (viewer != NULL) {
        viewer->is_reading = true;
        show(viewer);
    }
}

void service_picture_gone(void *userdata, struct web_exchange *exchange)
{
    struct viewer *viewer = web_exchange_get(exchange);

    (void)userdata;
    if (viewer != NULL) {
        end_viewer(viewer);
    }
}

static void give(struct viewer *viewer, const struct encoding *encoding)
{
    viewer->awaited = NULL;
    if (!viewer->wanted.is_stream && encoding->jpeg != NULL) {
        answer_image(viewer, encoding);
    } else if (!viewer->wanted.is_stream) {
        refuse_failed(viewer, &encoding->error);
    } else if (encoding->jpeg != NULL) {
        send_part(viewer, encoding);
    }
}

/* Any viewer may go meanwhile, so each is looked for anew. */
void service_picture_made(void *userdata, const struct encoding *encoding)
{
    const struct service *service = userdata;
    struct viewer *viewer;

    do {
        DL_SEARCH_SCALAR(service->viewers, viewer, awaited, encoding);
        if (viewer != NULL) {
            give(viewer, encoding);
        }
    } while (viewer != NULL);
}

void service_picture_frame(struct service *service, const char *identifier)
{
    struct viewer *viewer = NULL;

    DL_FOREACH (service->viewers, viewer) {
        if (viewer->is_reading && strcmp(viewer->wanted.identifier, identifier) == 0) {
            show(viewer);
        }
    }
}

void service_picture_removed(struct service *service, const char *identifier)
{
    struct viewer *viewer = NULL, *next = NULL;

    DL_FOREACH_SAFE (service->viewers, viewer, next) {
        if (viewer->wanted.is_stream && strcmp(viewer->wanted.identifier, identifier) == 0) {
            struct web_exchange *exchange = viewer->exchange;
            end_viewer(viewer);
            web_finish(exchange);
        }
    }
}
