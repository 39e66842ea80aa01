/* A camera's newest frames, one JPEG after the other, for a browser's <img> (MJPEG).
 *
 * A viewer is sent the next part only when it has read the last one, and then gets the newest
 * frame. So a slow viewer sees fewer frames, holds one part, and slows no other client down; all
 * viewers of the same picture share one JPEG.
 */
#include "detector/service_int.h"

#include "base/error.h"

#include <string.h>

#define BOUNDARY "frame"

enum { FULL_RETRY_S = 5 };

static struct viewer *find_viewer(struct service *service, uint64_t ticket)
{
    for (int i = 0; i < SERVICE_STREAMS_MAX; i++) {
        if (service->viewers[i].ticket == ticket) {
            return &service->viewers[i];
        }
    }
    return NULL;
}

unsigned service_stream_count(const struct service *service)
{
    unsigned count = 0;

    for (int i = 0; i < SERVICE_STREAMS_MAX; i++) {
        count += service->viewers[i].ticket != 0;
    }
    return count;
}

static void send_part(struct service *service, struct viewer *viewer, const struct image *image)
{
    struct http_reply *reply = server_reply(service->server, viewer->ticket);

    if (reply == NULL) {
        return;
    }
    buffer_printf(&reply->body,
                  "--" BOUNDARY "\r\nContent-Type: image/jpeg\r\nContent-Length: %zu\r\n\r\n",
                  image->bytes);
    buffer_put(&reply->body, image->jpeg, image->bytes);
    buffer_put_text(&reply->body, "\r\n");
    viewer->is_reading = false;
    service->parts_served++;
    server_answer(service->server, viewer->ticket);
}

/* Sends the newest frame, if the viewer has not had it and can take it. */
static void show(struct service *service, struct viewer *viewer)
{
    const struct subscription *subscription =
        worker_find(service->worker, viewer->wanted.identifier);
    struct still *still =
        image_newest(service->images, viewer->wanted.identifier, viewer->wanted.source);
    struct image_boxes *boxes = NULL;
    struct image_shape shape;
    struct image image;
    struct baton_error error;
    int rc;

    if (!viewer->is_reading || viewer->is_waiting || subscription == NULL || still == NULL ||
        still->number == viewer->number) {
        return;
    }
    image_shape(&shape, &still->frame, viewer->wanted.is_cropped ? &subscription->crop : NULL,
                viewer->wanted.width);
    if (viewer->wanted.has_boxes) {
        boxes = image_boxes(service->images, viewer->wanted.identifier, viewer->wanted.source);
    }
    rc = encoder_ask(service->encoder, still, &shape, boxes, viewer->ticket, &image, &error);
    viewer->number = still->number; /* a refused frame is skipped: another one follows */
    viewer->is_waiting = rc == BATON_EBUSY;
    if (rc == 0) {
        send_part(service, viewer, &image);
    }
}

void service_stream_begin(struct service *service, const struct camera_question *wanted,
                          uint64_t ticket, struct http_reply *reply)
{
    struct viewer *viewer = find_viewer(service, 0);

    if (viewer == NULL) {
        service_http_error(reply, 503,
                           "too many look at streams; ask for an image, or again later");
        reply->retry_after_s = FULL_RETRY_S;
        return;
    }
    *viewer = (struct viewer){.ticket = ticket, .wanted = *wanted};
    reply->kind = REPLY_PARTS;
    reply->status = 200;
    reply->type = "multipart/x-mixed-replace; boundary=" BOUNDARY;
}

void service_stream_wanted(void *userdata, uint64_t ticket)
{
    struct service *service = userdata;
    struct viewer *viewer = find_viewer(service, ticket);

    if (viewer != NULL) {
        viewer->is_reading = true;
        show(service, viewer);
    }
}

void service_stream_left(void *userdata, uint64_t ticket)
{
    struct service *service = userdata;
    struct viewer *viewer = find_viewer(service, ticket);

    if (viewer != NULL) {
        *viewer = (struct viewer){0};
    }
}

bool service_stream_encoded(struct service *service, uint64_t ticket, const struct image *image)
{
    struct viewer *viewer = find_viewer(service, ticket);

    if (viewer == NULL) {
        return false;
    }
    viewer->is_waiting = false;
    if (image != NULL) {
        send_part(service, viewer, image);
    }
    return true;
}

void service_stream_frame(struct service *service, const char *identifier)
{
    for (int i = 0; i < SERVICE_STREAMS_MAX; i++) {
        struct viewer *viewer = &service->viewers[i];
        if (viewer->ticket != 0 && strcmp(viewer->wanted.identifier, identifier) == 0) {
            show(service, viewer);
        }
    }
}

void service_stream_removed(struct service *service, const char *identifier)
{
    for (int i = 0; i < SERVICE_STREAMS_MAX; i++) {
        const struct viewer *viewer = &service->viewers[i];
        if (viewer->ticket != 0 && strcmp(viewer->wanted.identifier, identifier) == 0) {
            server_finish(service->server, viewer->ticket);
        }
    }
}
