#include "detector/camera/stream.h"

#include "base/error.h"
#include "detector/camera/broker.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/hwcontext.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUARTER = 90,
    HALF_TURN = 180,
    HALF_QUARTER = QUARTER / 2,
    PROBE_BYTES = 1 << 20,
    PROBE_US = 500000,     /* of the clip's own time */
    KEY_PACKETS_MAX = 300, /* a stream with rolling refresh never sends a whole key picture */
    FAREWELL_MS = 500,
    DECODED_PIXELS_MAX = 4 * RING_PIXELS_MAX, /* up to here lend() names what is too large */
    MS_PER_S = 1000,
    US_PER_S = 1000000,
};

struct stream {
    const struct camera_config *config;
    struct publisher *publisher;
    AVFormatContext *input;
    AVIOContext *file; /* NULL: none */
    AVCodecContext *decoder;
    enum AVPixelFormat hardware_format; /* AV_PIX_FMT_NONE: software decodes */
    int index;                          /* of the video */
    instant deadline;
    bool is_farewell; /* the deadline counts, is_stopping does not */
    AVPacket *packet;
    AVFrame *frame, *downloaded;
    unsigned packets_before_key;
    bool has_key;
    struct baton_error refusal; /* of a picture that is too large */
    instant paced_from;         /* when the first frame of a file was shown */
    int64_t paced_pts_us;
};

/* FFmpeg calls this ten times a second while it waits. */
static int interrupted(void *userdata)
{
    const struct stream *stream = userdata;

    publisher_tick(stream->publisher, clock_now());
    return (!stream->is_farewell && stream->publisher->is_stopping) ||
           instant_before(stream->deadline, clock_now());
}

/* FFmpeg's codes mislead (a dead server is an end of file), so what is known from elsewhere comes
 * first. */
static int failed(const struct stream *stream, int error, const char *what,
                  struct baton_error *reterr)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "";

    if (instant_before(stream->deadline, clock_now())) {
        return stream->decoder == NULL
                   ? error_set(reterr, BATON_ETIMEDOUT, "%s: nothing came within %d ms", what,
                               stream->config->options.open_ms)
                   : error_set(reterr, BATON_ETIMEDOUT, "%s: no picture came within %d ms", what,
                               stream->config->options.stall_ms);
    }
    if (broker_fault()->code != 0) {
        return error_set(reterr, broker_fault()->code, "%s: %s", what, broker_fault()->message);
    }
    if (stream->config->kind == SOURCE_FILE && (error == AVERROR(EIO) || error == AVERROR_EOF)) {
        return error_set(reterr, BATON_EIO, "%s: the clip is torn, or cannot be read", what);
    }
    switch (error) {
    case AVERROR(EIO):
        return stream->config->kind == SOURCE_RTSP && !broker_has_dialled()
                   ? error_set(reterr, BATON_ENOENT, "%s: the host's name is not known", what)
                   : error_set(reterr, BATON_EIO, "%s: the connection broke", what);
    case AVERROR_EXIT:
        return error_set(reterr, BATON_ECANCELED, "%s: stopped", what);
    case AVERROR_HTTP_UNAUTHORIZED:
    case AVERROR_HTTP_FORBIDDEN:
        return error_set(reterr, BATON_EAUTH,
                         "%s: the camera refuses name or password, or wants them in another way "
                         "than Basic or Digest with MD5",
                         what);
    case AVERROR(EPROTONOSUPPORT):
        return error_set(reterr, BATON_ENOTSUP,
                         "%s: the camera sends no media over %s; see --rtsp-transport", what,
                         stream->config->options.uses_udp ? "udp" : "tcp");
    case AVERROR_HTTP_NOT_FOUND:
        return error_set(reterr, BATON_ENOENT, "%s: the camera has no such stream", what);
    case AVERROR_EOF:
        return error_set(reterr, BATON_ECLOSED, "%s: the camera closed the connection", what);
    case AVERROR(ENOMEM):
        return error_set(reterr, BATON_ENOMEM, "%s: out of memory", what);
    case AVERROR(EACCES):
        return error_set(reterr, BATON_EINVAL, "%s: that address may not be dialled", what);
    case AVERROR(EPERM): /* of many checks of FFmpeg's, no call of the kernel's */
    case AVERROR_INVALIDDATA:
        return error_set(reterr, BATON_EPROTO, "%s: %s", what,
                         stream->config->kind == SOURCE_RTSP
                             ? "the camera's answer is missing, or not as RTSP wants it"
                             : "this is no clip that FFmpeg can read");
    default:
        (void)av_strerror(error, text, sizeof(text));
        return error_set(reterr, BATON_EIO, "%s: %s", what, text);
    }
}

/* A file gets no protocol at all, so a playlist cannot lead anywhere. FFmpeg's timeout is a second
 * net: our own deadline comes first, and knows the step that it ended. Before FFmpeg 5 that option
 * had another name, and is silently unused since. */
static int set_options(const struct camera_config *config, AVDictionary **options)
{
    int64_t timeout_us = ((int64_t)config->options.open_ms + config->options.stall_ms) * 1000;
    char source[160] = "protocol_whitelist=none", all[256];

    if (config->kind != SOURCE_FILE) {
        (void)snprintf(source, sizeof(source),
                       "protocol_whitelist=rtsp,tcp,udp,rtp;allowed_media_types=video;"
                       "rtsp_transport=%s;timeout=%lld",
                       config->options.uses_udp ? "udp" : "tcp", (long long)timeout_us);
    }
    (void)snprintf(all, sizeof(all), "fpsprobesize=0;probesize=%d;analyzeduration=%d;%s",
                   PROBE_BYTES, PROBE_US, source);
    return av_dict_parse_string(options, all, "=", ";", 0);
}

static int open_input(struct stream *stream, struct baton_error *reterr)
{
    const struct camera_config *config = stream->config;
    AVDictionary *options = NULL;
    const AVDictionaryEntry *unused;
    bool is_file = config->kind == SOURCE_FILE;
    int rc;

    stream->input = avformat_alloc_context();
    if (stream->input == NULL) {
        return failed(stream, AVERROR(ENOMEM), "open", reterr);
    }
    stream->input->interrupt_callback =
        (AVIOInterruptCB){.callback = interrupted, .opaque = stream};
    if (is_file) {
        stream->input->pb = stream->file;
        stream->input->flags |= AVFMT_FLAG_CUSTOM_IO;
    }
    rc = set_options(config, &options);
    if (rc >= 0) {
        /* On failure it frees the context and sets it to NULL. */
        rc = avformat_open_input(&stream->input, is_file ? NULL : config->url,
                                 is_file ? NULL : av_find_input_format("rtsp"), &options);
    }
    unused = rc >= 0 ? av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX) : NULL;
    if (unused != NULL) {
        rc = error_set(reterr, BATON_ENOTSUP, "open: this FFmpeg does not know the option %s",
                       unused->key);
    } else if (rc < 0) {
        rc = failed(stream, rc, "open", reterr);
    }
    av_dict_free(&options);
    if (rc < 0) {
        return rc;
    }
    /* A camera's description names the codec, and the rest comes with the first key picture.
     * Probing half a second of the stream would show everything that much later. Of a transport
     * stream (MPEG-TS) it names nothing: what is in it comes with the first packets. */
    rc = is_file || stream->input->nb_streams == 0 ? avformat_find_stream_info(stream->input, NULL)
                                                   : 0;
    return rc < 0 ? failed(stream, rc, "probe", reterr) : 0;
}

static enum AVPixelFormat choose_format(AVCodecContext *decoder, const enum AVPixelFormat *formats)
{
    const struct stream *stream = decoder->opaque;

    for (const enum AVPixelFormat *format = formats; *format != AV_PIX_FMT_NONE; format++) {
        if (*format == stream->hardware_format) {
            return *format;
        }
    }
    return avcodec_default_get_format(decoder, formats);
}

/* Lends the decoder memory that is shared with the parent. */
static int lend(AVCodecContext *decoder, AVFrame *frame, int flags)
{
    struct stream *stream = decoder->opaque;
    struct ring_layout layout;

    if (ring_layout(&layout, (uint32_t)decoder->width, (uint32_t)decoder->height,
                    &stream->refusal) != 0) {
        return AVERROR(EINVAL);
    }
    publisher_listen(stream->publisher); /* what is given back now need not be new memory */
    return stream->publisher->turns != 0
               ? avcodec_default_get_buffer2(decoder, frame, flags)
               : slots_lend(&stream->publisher->slots, &layout, decoder, frame, flags);
}

/* Uses hardware where it is configured and present, else software; the parent is sent which one. */
static void try_hardware(struct stream *stream, const AVCodec *codec)
{
    enum AVHWDeviceType type = av_hwdevice_find_type_by_name(stream->config->options.hardware);
    const AVCodecHWConfig *config;

    for (int i = 0; (config = avcodec_get_hw_config(codec, i)) != NULL; i++) {
        if ((config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0 &&
            config->device_type == type &&
            av_hwdevice_ctx_create(&stream->decoder->hw_device_ctx, type, NULL, NULL, 0) >= 0) {
            stream->hardware_format = config->pix_fmt;
            stream->decoder->get_format = choose_format;
            return;
        }
    }
}

/* A phone writes its pictures as its sensor sees them, and how to turn them into the clip. */
static int quarter_turns(const AVStream *video)
{
#if LIBAVCODEC_VERSION_MAJOR >= 61
    const AVPacketSideData *data =
        av_packet_side_data_get(video->codecpar->coded_side_data,
                                video->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    const uint8_t *matrix = data != NULL ? data->data : NULL;
#else
    const uint8_t *matrix = av_stream_get_side_data(video, AV_PKT_DATA_DISPLAYMATRIX, NULL);
#endif
    double angle = matrix != NULL ? av_display_rotation_get((const int32_t *)matrix) : 0;

    /* To the left, and no number if the matrix turns nothing. */
    return angle >= -HALF_TURN && angle <= HALF_TURN
               ? (int)(2 * HALF_TURN + HALF_QUARTER - angle) / QUARTER % 4
               : 0;
}

static int open_decoder(struct stream *stream, struct baton_error *reterr)
{
    const AVCodec *codec = NULL;
    const AVStream *video;
    int rc = av_find_best_stream(stream->input, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);

    if (rc == AVERROR_DECODER_NOT_FOUND) {
        return error_set(reterr, BATON_ENOTSUP, "decoder: this FFmpeg has none for the stream");
    }
    if (rc < 0) {
        return error_set(reterr, BATON_ENOTSUP, "the camera sends no video");
    }
    stream->index = rc;
    video = stream->input->streams[rc];
    stream->publisher->turns = quarter_turns(video);
    stream->decoder = avcodec_alloc_context3(codec);
    if (stream->decoder == NULL) {
        return failed(stream, AVERROR(ENOMEM), "decoder", reterr);
    }
    rc = avcodec_parameters_to_context(stream->decoder, video->codecpar);
    stream->decoder->pkt_timebase = video->time_base;
    stream->decoder->thread_count = 1; /* adds no latency, and no thread needs to be allowed */
    stream->decoder->max_pixels = DECODED_PIXELS_MAX;
    stream->decoder->opaque = stream;
    stream->decoder->get_buffer2 = lend;
    stream->decoder->thread_type = FF_THREAD_SLICE; /* lend() is for one thread */
#if LIBAVCODEC_VERSION_MAJOR >= 60
    stream->decoder->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
#endif
    if (rc >= 0 && stream->config->options.hardware[0] != '\0') {
        try_hardware(stream, codec);
    }
    rc = rc < 0 ? rc : avcodec_open2(stream->decoder, codec, NULL);
    return rc < 0 ? failed(stream, rc, "decoder", reterr) : 0;
}

/* The duration of the video. If only the container has one, it may be longer. */
static uint32_t duration_ms(const struct stream *stream)
{
    const AVStream *video = stream->input->streams[stream->index];
    int64_t ms = 0;

    if (stream->config->kind != SOURCE_FILE) {
        return 0;
    }
    if (video->duration > 0) {
        ms = av_rescale_q(video->duration, video->time_base, (AVRational){1, MS_PER_S});
    } else if (stream->input->duration > 0) {
        ms = stream->input->duration / (US_PER_S / MS_PER_S);
    }
    return ms > 0 && ms <= UINT32_MAX ? (uint32_t)ms : 0;
}

static void tell_opened(struct stream *stream)
{
    AVStream *video = stream->input->streams[stream->index];
    AVRational rate = av_guess_frame_rate(stream->input, video, NULL);
    double fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
    struct camera_message message = {
        .type = MESSAGE_OPENED,
        .width = (uint32_t)(stream->decoder->width > 0 ? stream->decoder->width : 0),
        .height = (uint32_t)(stream->decoder->height > 0 ? stream->decoder->height : 0),
        .fps_milli = fps < 1000 ? (uint32_t)(fps * 1000) : 0,
        .duration_ms = duration_ms(stream)};

    if (stream->publisher->turns % 2 != 0) {
        message.width = (uint32_t)stream->decoder->height;
        message.height = (uint32_t)stream->decoder->width;
    }
    (void)snprintf(message.codec, sizeof(message.codec), "%s",
                   avcodec_get_name(stream->decoder->codec_id));
    if (stream->hardware_format != AV_PIX_FMT_NONE) {
        (void)snprintf(message.hardware, sizeof(message.hardware), "%s",
                       stream->config->options.hardware);
    }
    (void)publisher_send(stream->publisher, &message);
}

/* Shows a file at its own speed: the first frame at once, the others by the times in the file. */
static void keep_time(struct stream *stream, int64_t pts_us)
{
    if (!stream->config->options.is_paced || pts_us == INT64_MIN) {
        return;
    }
    if (stream->paced_from.ns == 0) {
        stream->paced_from = clock_now();
        stream->paced_pts_us = pts_us;
    }
    publisher_sleep(stream->publisher, stream->paced_from, &SPAN_US(pts_us - stream->paced_pts_us));
}

static instant arrival_of(const AVFrame *frame)
{
#if LIBAVCODEC_VERSION_MAJOR >= 60
    return (instant){(int64_t)(intptr_t)frame->opaque};
#else
    return (instant){frame->reordered_opaque};
#endif
}

static void await_picture(struct stream *stream)
{
    stream->deadline = instant_add(clock_now(), SPAN_MS(stream->config->options.stall_ms));
}

static int show(struct stream *stream, struct baton_error *reterr)
{
    const AVFrame *frame = stream->frame;
    AVRational base = stream->input->streams[stream->index]->time_base;
    int64_t pts_us = INT64_MIN;
    int rc;

    if (frame->format == stream->hardware_format) {
        av_frame_unref(stream->downloaded);
        if (av_hwframe_transfer_data(stream->downloaded, frame, 0) < 0 ||
            av_frame_copy_props(stream->downloaded, frame) < 0) {
            return 0; /* one frame is lost; if all are, the wait for one ends */
        }
        frame = stream->downloaded;
    }
    if (frame->best_effort_timestamp != AV_NOPTS_VALUE) {
        pts_us = av_rescale_q(frame->best_effort_timestamp, base, (AVRational){1, US_PER_S});
    }
    keep_time(stream, pts_us);
    rc = publisher_show(stream->publisher, frame, pts_us, arrival_of(stream->frame), reterr);
    await_picture(stream);
    return rc;
}

/* Over a network some packets are damaged: the decoder goes on with the next one. */
static int decode(struct stream *stream, const AVPacket *packet, struct baton_error *reterr)
{
    int rc = avcodec_send_packet(stream->decoder, packet);

    if (rc == AVERROR(ENOMEM)) {
        return failed(stream, rc, "decode", reterr);
    }
    while (avcodec_receive_frame(stream->decoder, stream->frame) == 0) {
        rc = show(stream, reterr);
        av_frame_unref(stream->frame);
        if (rc < 0 || stream->publisher->is_stopping) {
            return rc;
        }
    }
    return stream->refusal.code != 0
               ? error_set(reterr, stream->refusal.code, "%s", stream->refusal.message)
               : 0;
}

/* Pictures before the first key picture would be grey. */
static bool is_usable(struct stream *stream)
{
    const AVPacket *packet = stream->packet;

    if (packet->stream_index != stream->index) {
        return false;
    }
    stream->publisher->counts.received++;
    if (!stream->has_key) {
        stream->has_key = (packet->flags & AV_PKT_FLAG_KEY) != 0 ||
                          ++stream->packets_before_key > KEY_PACKETS_MAX;
    }
    return stream->has_key;
}

static void stamp(struct stream *stream)
{
#if LIBAVCODEC_VERSION_MAJOR >= 60
    stream->packet->opaque = (void *)(intptr_t)clock_now().ns;
#else
    stream->decoder->reordered_opaque = clock_now().ns;
#endif
}

/* Reads the next packet of a clip or camera. When FFmpeg's reader is interrupted, it still returns
 * the incomplete picture as a success; showing it would begin the wait anew. Nor do packets that
 * give no picture go on without end. */
static int read_packet(struct stream *stream)
{
    int rc = av_read_frame(stream->input, stream->packet);

    if (rc >= 0 && instant_before(stream->deadline, clock_now())) {
        av_packet_unref(stream->packet);
        return AVERROR_EXIT;
    }
    return rc;
}

static int play(struct stream *stream, struct baton_error *reterr)
{
    int rc = 0;

    await_picture(stream);
    while (rc == 0 && !stream->publisher->is_stopping) {
        rc = read_packet(stream);
        if (rc == AVERROR_EOF && stream->config->kind == SOURCE_FILE) {
            return decode(stream, NULL, reterr); /* the frames that it still held back */
        }
        if (rc < 0) {
            return stream->publisher->is_stopping ? 0 : failed(stream, rc, "read", reterr);
        }
        stamp(stream);
        if (is_usable(stream)) {
            rc = decode(stream, stream->packet, reterr);
        }
        av_packet_unref(stream->packet);
    }
    return rc;
}

static void close_all(struct stream *stream)
{
    stream->is_farewell = true;
    stream->deadline = instant_add(clock_now(), SPAN_MS(FAREWELL_MS));
    avcodec_free_context(&stream->decoder);
    avformat_close_input(&stream->input); /* an RTSP camera is sent TEARDOWN */
    av_packet_free(&stream->packet);
    av_frame_free(&stream->frame);
    av_frame_free(&stream->downloaded);
}

int stream_run(const struct camera_config *config, const struct confinement *confinement,
               AVIOContext *file, struct publisher *publisher, struct baton_error *reterr)
{
    struct stream stream = {.config = config,
                            .publisher = publisher,
                            .file = file,
                            .hardware_format = AV_PIX_FMT_NONE,
                            .deadline = instant_add(clock_now(), SPAN_MS(config->options.open_ms)),
                            .packet = av_packet_alloc(),
                            .frame = av_frame_alloc(),
                            .downloaded = av_frame_alloc()};
    int rc = file != NULL ? confine_stream(confinement, reterr) : 0;

    if (rc == 0 && (stream.packet == NULL || stream.frame == NULL || stream.downloaded == NULL)) {
        rc = failed(&stream, AVERROR(ENOMEM), "open", reterr);
    }
    rc = rc ? rc : open_input(&stream, reterr);
    rc = rc ? rc : open_decoder(&stream, reterr);
    if (rc == 0) {
        tell_opened(&stream);
    }
    rc = rc || file != NULL ? rc : confine_stream(confinement, reterr);
    broker_settle();
    rc = rc ? rc : play(&stream, reterr);
    close_all(&stream);
    broker_farewell();
    return rc;
}
