/* usage: baton-bench-alone CLIP ENGINE MODEL.onnx WIDTH HEIGHT FIRST WORK
 *
 * The least that the work costs, in one process and one thread that do nothing else: every frame
 * of a clip is decoded, and the model runs after each, on numbers that are always the same, or, if
 * WORK is "scaled" and not "alone", on those of the frame, by the detector's own conversion.
 * Prints CPU milliseconds a frame as JSON; what comes before the frame FIRST does not count.
 */
#include "base/error.h"
#include "base/value.h"
#include "detector/infer/input.h"
#include "detector/infer/library.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MODEL_BYTES = 1 << 28 };

struct job {
    AVFormatContext *input;
    AVCodecContext *decoder;
    int stream;
    struct network network;
    struct picture_scaler scaler;
    bool is_scaled;
    int frames, first;
    double begin_ms;
};

static double cpu_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int scale(struct job *job, const AVFrame *frame, struct baton_error *reterr)
{
    const struct pipeline_input input = {.width = (int)job->network.input.sides[3],
                                         .height = (int)job->network.input.sides[2],
                                         .is_letterboxed = true,
                                         .scale = 1.0F / 255,
                                         .std = {1, 1, 1}};
    const int whole[4] = {0, 0, frame->width, frame->height};
    struct frame given = {.width = frame->width, .height = frame->height};
    struct fit fit;

    for (int i = 0; i < 3; i++) {
        given.plane[i] = frame->data[i];
        given.stride[i] = frame->linesize[i];
    }
    return input_make(&job->scaler, &input, &given, whole, job->network.values, &fit, reterr);
}

static int work(struct job *job, const AVFrame *frame, struct baton_error *reterr)
{
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    int code = 0;

    if (job->frames++ == job->first) {
        job->begin_ms = cpu_ms();
    }
    if (job->is_scaled) {
        code = scale(job, frame, reterr);
    }
    if (code) {
        return code;
    }
    return job->network.library->run(&job->network, 1, outputs, reterr) < 0 ? reterr->code : 0;
}

/* `packet` NULL: what the decoder still holds back. */
static int decode(struct job *job, const AVPacket *packet, AVFrame *frame,
                  struct baton_error *reterr)
{
    int code = 0;

    (void)avcodec_send_packet(job->decoder, packet);
    while (code == 0 && avcodec_receive_frame(job->decoder, frame) == 0) {
        code = work(job, frame, reterr);
        av_frame_unref(frame);
    }
    return code;
}

static int play(struct job *job, struct baton_error *reterr)
{
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    int code = packet && frame ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory");

    while (code == 0 && av_read_frame(job->input, packet) == 0) {
        if (packet->stream_index == job->stream) {
            code = decode(job, packet, frame, reterr);
        }
        av_packet_unref(packet);
    }
    code = code ? code : decode(job, NULL, frame, reterr);
    av_packet_free(&packet);
    av_frame_free(&frame);
    return code;
}

static int open_clip(struct job *job, const char *path, struct baton_error *reterr)
{
    const AVCodec *codec = NULL;

    if (avformat_open_input(&job->input, path, NULL, NULL) == 0 &&
        avformat_find_stream_info(job->input, NULL) >= 0) {
        job->stream = av_find_best_stream(job->input, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
        job->decoder = codec ? avcodec_alloc_context3(codec) : NULL;
    }
    if (job->decoder) {
        job->decoder->thread_count = 1;
        if (avcodec_parameters_to_context(job->decoder,
                                          job->input->streams[job->stream]->codecpar) >= 0 &&
            avcodec_open2(job->decoder, codec, NULL) == 0) {
            return 0;
        }
    }
    return error_set(reterr, BATON_EIO, "%s: cannot be decoded", path);
}

static int open_model(struct job *job, char **arguments, struct baton_error *reterr)
{
    const struct library_options options = {
        .kind = (enum engine_kind)value_choice(arguments[2], ENGINE_KINDS, NULL)};
    FILE *file = fopen(arguments[3], "rbe");
    char *model = file ? malloc(MODEL_BYTES) : NULL;
    size_t bytes = model ? fread(model, 1, MODEL_BYTES, file) : 0;
    struct network *network = &job->network;
    size_t count = 0;
    int code;

    if (file) {
        (void)fclose(file);
    }
    network->input =
        (struct shape){4, {1, 3, strtol(arguments[5], NULL, 10), strtol(arguments[4], NULL, 10)}};
    count = (size_t)shape_numbers(&network->input);
    network->values = calloc(count, sizeof(float));
    code = library_load(&network->library, &options, reterr);
    code = code ? code : network->library->open(network, model, bytes, reterr);
    free(model);
    for (size_t i = 0; !code && network->values && i < count; i++) {
        network->values[i] = (float)(i * 2654435761U % 256) / 255;
    }
    return code;
}

int main(int argc, char **argv)
{
    struct job job = {0};
    struct baton_error error = {0};
    int code;

    if (argc != 8 || value_choice(argv[2], ENGINE_KINDS, NULL) < 0) {
        (void)fputs("usage: baton-bench-alone CLIP ENGINE MODEL.onnx WIDTH HEIGHT FIRST WORK\n",
                    stderr);
        return 2;
    }
    job.is_scaled = strcmp(argv[7], "scaled") == 0;
    job.first = (int)strtol(argv[6], NULL, 10);
    code = open_clip(&job, argv[1], &error);
    code = code ? code : open_model(&job, argv, &error);
    code = code ? code : play(&job, &error);
    if (!code && job.frames <= job.first) {
        code = error_set(&error, BATON_EINVAL, "%s: has %d frames", argv[1], job.frames);
    }
    if (code == 0) {
        (void)printf("{\"engine\": \"%s\", \"frames\": %d, \"ms\": %.4f}\n",
                     job.network.library->name, job.frames,
                     (cpu_ms() - job.begin_ms) / (job.frames - job.first));
    } else {
        (void)fprintf(stderr, "baton-bench-alone: %s\n", error.message);
    }
    picture_scaler_fini(&job.scaler);
    free(job.network.values);
    avcodec_free_context(&job.decoder);
    avformat_close_input(&job.input);
    return code ? EXIT_FAILURE : EXIT_SUCCESS;
}
