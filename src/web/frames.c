#include "web/frames.h"

#include <string.h>

enum { FIN = 0x80, RESERVED = 0x70, OPCODE = 0x0f, MASKED = 0x80, LENGTH = 0x7f };
enum { LENGTH_16 = 126, LENGTH_64 = 127 };

/* ---- Texts ----------------------------------------------------------------------------------- */

/* The first byte of a code point (Unicode, table 3-7). */
static bool begin_code_point(struct web_utf8 *utf8, uint8_t byte)
{
    utf8->low = 0x80;
    utf8->high = 0xbf;
    if (byte < 0x80) {
        return true;
    }
    if (byte < 0xc2 || byte > 0xf4) {
        return false;
    }
    utf8->wanted = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    utf8->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;  /* no longer than needed */
    utf8->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf; /* no surrogates; the last one */
    return true;
}

bool web_utf8_take(struct web_utf8 *utf8, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (utf8->wanted == 0) {
            uint64_t eight;
            while (bytes - i >= sizeof(eight)) { /* most texts are ASCII */
                memcpy(&eight, data + i, sizeof(eight));
                if ((eight & UINT64_C(0x8080808080808080)) != 0) {
                    break;
                }
                i += sizeof(eight);
            }
            if (i == bytes) {
                break;
            }
            if (!begin_code_point(utf8, data[i])) {
                return false;
            }
        } else if (data[i] < utf8->low || data[i] > utf8->high) {
            return false;
        } else {
            utf8->wanted--;
            utf8->low = 0x80;
            utf8->high = 0xbf;
        }
    }
    return true;
}

/* ---- Heads ----------------------------------------------------------------------------------- */

void web_frames_init(struct web_frames *frames, bool is_server, size_t message_max)
{
    *frames = (struct web_frames){.wants_mask = is_server, .message_max = message_max};
    buffer_init(&frames->message, message_max);
}

void web_frames_fini(struct web_frames *frames)
{
    buffer_fini(&frames->message);
}

static enum web_frame refuse(struct web_frames *frames, unsigned code, const char *reason)
{
    frames->code = code;
    frames->reason = reason;
    return WEB_FRAME_REFUSED;
}

/* Bytes of the head, as far as those that came tell. */
static unsigned head_size(const struct web_frames *frames)
{
    unsigned size = 2;

    if (frames->head_bytes >= 2) {
        unsigned length = frames->head[1] & LENGTH;
        size += length == LENGTH_16 ? 2 : length == LENGTH_64 ? 8 : 0;
        size += (frames->head[1] & MASKED) != 0 ? 4 : 0;
    }
    return size;
}

static uint64_t declared_length(const uint8_t *head)
{
    unsigned short_length = head[1] & LENGTH;
    unsigned bytes = short_length == LENGTH_16 ? 2 : short_length == LENGTH_64 ? 8 : 0;
    uint64_t length = bytes == 0 ? short_length : 0;

    for (unsigned i = 0; i < bytes; i++) {
        length = length << 8 | head[2 + i];
    }
    return length;
}

static bool is_shortest(const uint8_t *head, uint64_t length)
{
    unsigned short_length = head[1] & LENGTH;

    return short_length == LENGTH_16 ? length >= LENGTH_16
                                     : short_length != LENGTH_64 || length > 0xffff;
}

static bool is_control(enum web_opcode opcode)
{
    return (opcode & 8) != 0;
}

static enum web_frame check_control(struct web_frames *frames)
{
    if (frames->opcode > WEB_OPCODE_PONG) {
        return refuse(frames, WEB_CLOSE_PROTOCOL_ERROR, "a frame of an unknown kind");
    }
    if (!frames->is_final || frames->left > WEB_CONTROL_MAX) {
        return refuse(frames, WEB_CLOSE_PROTOCOL_ERROR,
                      "a control frame is whole, and of at most 125 bytes");
    }
    frames->control_bytes = 0;
    frames->control_total += head_size(frames) + frames->left;
    return WEB_FRAME_MORE;
}

static enum web_frame check_data(struct web_frames *frames)
{
    bool has_begun = frames->kind != WEB_OPCODE_MORE;

    if (frames->opcode > WEB_OPCODE_BINARY) {
        return refuse(frames, WEB_CLOSE_PROTOCOL_ERROR, "a frame of an unknown kind");
    }
    if (has_begun != (frames->opcode == WEB_OPCODE_MORE)) {
        return refuse(frames, WEB_CLOSE_PROTOCOL_ERROR,
                      has_begun ? "a message begins before the last one has ended"
                                : "a fragment of no message");
    }
    if (!has_begun) {
        frames->kind = frames->opcode;
        frames->length = 0;
        frames->fragments = 0;
        frames->utf8 = (struct web_utf8){0};
    }
    if (++frames->fragments > WEB_FRAGMENTS_MAX) {
        return refuse(frames, WEB_CLOSE_POLICY, "a message has too many fragments");
    }
    if (frames->left > frames->message_max - frames->length) {
        return refuse(frames, WEB_CLOSE_TOO_LARGE, "message too large");
    }
    frames->length += frames->left;
    return WEB_FRAME_MORE;
}

/* The head is here. */
static enum web_frame begin_payload(struct web_frames *frames)
{
    const uint8_t *head = frames->head;
    bool is_masked = (head[1] & MASKED) != 0;

    frames->opcode = (enum web_opcode)(head[0] & OPCODE);
    frames->is_final = (head[0] & FIN) != 0;
    frames->left = declared_length(head);
    frames->is_in_payload = true;
    frames->at = 0;
    memset(frames->mask, 0, sizeof(frames->mask));
    if (is_masked) {
        memcpy(frames->mask, head + frames->head_bytes - 4, 4);
    }
    if ((head[0] & RESERVED) != 0) {
        return refuse(frames, WEB_CLOSE_PROTOCOL_ERROR, "a reserved bit is set");
    }
    if (is_masked != frames->wants_mask) {
        return refuse(frames, WEB_CLOSE_PROTOCOL_ERROR,
                      is_masked ? "a frame of a server is masked"
                                : "a frame of a client is not masked");
    }
    if (!is_shortest(head, frames->left)) {
        return refuse(frames, WEB_CLOSE_PROTOCOL_ERROR,
                      "the length of a frame is not written in as few bytes as it can be");
    }
    return is_control(frames->opcode) ? check_control(frames) : check_data(frames);
}

static enum web_frame read_head(struct web_frames *frames, const uint8_t *data, size_t bytes,
                                size_t *ret_taken)
{
    while (frames->head_bytes < head_size(frames)) {
        if (*ret_taken == bytes) {
            return WEB_FRAME_MORE;
        }
        frames->head[frames->head_bytes++] = data[(*ret_taken)++];
    }
    return begin_payload(frames);
}

/* ---- Payloads -------------------------------------------------------------------------------- */

void web_mask(uint8_t *to, const uint8_t *from, size_t bytes, const uint8_t mask[WEB_MASK_BYTES],
              unsigned at)
{
    uint8_t key[8];
    uint64_t eight, word;
    size_t i = 0;

    for (unsigned k = 0; k < 8; k++) {
        key[k] = mask[(at + k) & 3];
    }
    memcpy(&eight, key, sizeof(eight));
    for (; bytes - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, from + i, sizeof(word));
        word ^= eight;
        memcpy(to + i, &word, sizeof(word));
    }
    for (; i < bytes; i++) {
        to[i] = from[i] ^ key[i & 7];
    }
}

static void unmask(struct web_frames *frames, uint8_t *to, const uint8_t *from, size_t bytes)
{
    web_mask(to, from, bytes, frames->mask, frames->at);
    frames->at = (unsigned)((frames->at + bytes) & 3);
}

/* Codes that a peer may send (RFC 6455, 7.4). */
static bool is_close_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

static enum web_frame read_close(struct web_frames *frames)
{
    struct web_utf8 utf8 = {0};
    size_t bytes = frames->control_bytes;

    frames->code = 0;
    if (bytes == 0) {
        return WEB_FRAME_CLOSE;
    }
    frames->code = (unsigned)frames->control[0] << 8 | frames->control[bytes > 1];
    if (bytes == 1 || !is_close_code(frames->code)) {
        return refuse(frames, WEB_CLOSE_PROTOCOL_ERROR, "a close frame without a valid code");
    }
    if (!web_utf8_take(&utf8, frames->control + 2, bytes - 2) || utf8.wanted > 0) {
        return refuse(frames, WEB_CLOSE_NOT_TEXT, "the reason of a close that is not UTF-8");
    }
    frames->control_bytes = bytes - 2;
    memmove(frames->control, frames->control + 2, frames->control_bytes);
    return WEB_FRAME_CLOSE;
}

static enum web_frame end_frame(struct web_frames *frames)
{
    frames->is_in_payload = false;
    frames->head_bytes = 0;
    if (is_control(frames->opcode)) {
        return frames->opcode == WEB_OPCODE_CLOSE  ? read_close(frames)
               : frames->opcode == WEB_OPCODE_PING ? WEB_FRAME_PING
                                                   : WEB_FRAME_PONG;
    }
    if (!frames->is_final) {
        return WEB_FRAME_MORE;
    }
    frames->is_over = true;
    if (frames->kind == WEB_OPCODE_BINARY) {
        return WEB_FRAME_BINARY;
    }
    return frames->utf8.wanted > 0
               ? refuse(frames, WEB_CLOSE_NOT_TEXT, "a text message that is not UTF-8")
               : WEB_FRAME_TEXT;
}

/* The next bytes of the payload. */
static enum web_frame read_payload(struct web_frames *frames, const uint8_t *data, size_t bytes)
{
    uint8_t *room;

    frames->left -= bytes;
    if (is_control(frames->opcode)) {
        unmask(frames, frames->control + frames->control_bytes, data, bytes);
        frames->control_bytes += bytes;
        return WEB_FRAME_MORE;
    }
    if (frames->kind == WEB_OPCODE_BINARY || bytes == 0) {
        return WEB_FRAME_MORE;
    }
    room = buffer_reserve(&frames->message, bytes);
    if (room == NULL) {
        return refuse(frames, WEB_CLOSE_TOO_LARGE, "out of memory for a message");
    }
    unmask(frames, room, data, bytes);
    frames->message.bytes += bytes;
    return web_utf8_take(&frames->utf8, room, bytes)
               ? WEB_FRAME_MORE
               : refuse(frames, WEB_CLOSE_NOT_TEXT, "a text message that is not UTF-8");
}

enum web_frame web_frames_read(struct web_frames *frames, const void *data, size_t bytes,
                               size_t *ret_taken)
{
    const uint8_t *at = data;
    enum web_frame found = WEB_FRAME_MORE;

    *ret_taken = 0;
    if (frames->is_over) {
        frames->is_over = false;
        frames->kind = WEB_OPCODE_MORE;
        buffer_clear(&frames->message);
    }
    while (found == WEB_FRAME_MORE && *ret_taken < bytes) {
        if (!frames->is_in_payload) {
            found = read_head(frames, at, bytes, ret_taken);
        }
        if (found == WEB_FRAME_MORE && frames->is_in_payload) {
            size_t left = bytes - *ret_taken;
            size_t count = frames->left < left ? (size_t)frames->left : left;
            found = read_payload(frames, at + *ret_taken, count);
            *ret_taken += count;
        }
        if (found == WEB_FRAME_MORE && frames->is_in_payload && frames->left == 0) {
            found = end_frame(frames);
        }
    }
    return found;
}

/* ---- Making frames --------------------------------------------------------------------------- */

size_t web_frame_head(uint8_t ret[static WEB_FRAME_HEAD_MAX], enum web_opcode opcode, size_t bytes,
                      const uint8_t mask[WEB_MASK_BYTES])
{
    unsigned length_bytes = bytes < LENGTH_16 ? 0 : bytes <= 0xffff ? 2 : 8;
    size_t used = 2;

    ret[0] = (uint8_t)(FIN | opcode);
    ret[1] = (uint8_t)(length_bytes == 0 ? bytes : length_bytes == 2 ? LENGTH_16 : LENGTH_64);
    for (unsigned i = length_bytes; i > 0; i--) {
        ret[used++] = (uint8_t)((uint64_t)bytes >> (8 * (i - 1)));
    }
    if (mask != NULL) {
        ret[1] |= MASKED;
        memcpy(ret + used, mask, WEB_MASK_BYTES);
        used += WEB_MASK_BYTES;
    }
    return used;
}
