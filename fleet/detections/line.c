#include "fleet/detections/line.h"

#include "base/json_text.h"

#include <openssl/evp.h>
#include <string.h>

enum { KEY_DIGITS = 16, DIGEST_BYTES_MAX = EVP_MAX_MD_SIZE };

/* 0.95 stays 0.95, as in the protocol's own messages. */
#define DUMP_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))

static const char opening[] = "{\"key\":\"";
static const char digits[] = "0123456789abcdef";

void line_put_text(struct buffer *buffer, const char *text)
{
    const char *plain = text;

    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c >= 0x20 && *c != '"' && *c != '\\') {
            continue;
        }
        buffer_put(buffer, plain, (size_t)(c - plain));
        if ((unsigned char)*c < 0x20) {
            buffer_printf(buffer, "\\u%04x", *c);
        } else {
            buffer_put_u8(buffer, '\\');
            buffer_put_u8(buffer, (uint8_t)*c);
        }
        plain = c + 1;
    }
    buffer_put_text(buffer, plain);
}

static void put_text(struct buffer *line, const char *between, const char *text)
{
    buffer_put_text(line, between);
    line_put_text(line, text);
}

/* The first eight bytes of SHA-256, as the library's fastest hash without a key of its own. */
static bool hash(uint64_t *ret, const struct buffer *text)
{
    unsigned char digest[DIGEST_BYTES_MAX];
    struct reader reader = reader_of(digest, sizeof(*ret));

    if (EVP_Digest(text->data, text->bytes, digest, NULL, EVP_sha256(), NULL) != 1) {
        return false;
    }
    *ret = reader_u64(&reader);
    return true;
}

/* worker \0 subscription \0 timestamp \0 data; *ret_data: where the latter begins. */
static bool cover(struct buffer *covered, const struct line_parts *parts, size_t *ret_data)
{
    const char *const texts[] = {parts->worker, parts->subscription, parts->timestamp};

    buffer_clear(covered);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        buffer_put(covered, texts[i], strlen(texts[i]) + 1);
    }
    *ret_data = covered->bytes;
    json_put_to(covered, parts->data, DUMP_FLAGS);
    return !covered->failed;
}

void line_writer_init(struct line_writer *writer)
{
    buffer_init(&writer->line, LINE_BYTES_MAX);
    buffer_init(&writer->covered, LINE_BYTES_MAX);
}

void line_writer_fini(struct line_writer *writer)
{
    buffer_fini(&writer->line);
    buffer_fini(&writer->covered);
}

bool line_write(struct line_writer *writer, const struct line_parts *parts, uint64_t *ret_key)
{
    struct buffer *line = &writer->line;
    uint64_t key;
    size_t data;

    if (!cover(&writer->covered, parts, &data) || !hash(&key, &writer->covered)) {
        return false;
    }
    buffer_clear(line);
    buffer_printf(line, "%s%016llx", opening, (unsigned long long)key);
    put_text(line, "\",\"worker\":\"", parts->worker);
    put_text(line, "\",\"process\":\"", parts->process);
    put_text(line, "\",\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"",
             parts->subscription);
    put_text(line, "\",\"timestamp\":\"", parts->timestamp);
    buffer_put_text(line, "\",\"sessionId\":");
    if (json_is_integer(parts->session)) {
        buffer_printf(line, "%lld", (long long)json_integer_value(parts->session));
    } else {
        buffer_put_text(line, "null");
    }
    buffer_put_text(line, ",\"data\":");
    buffer_put(line, writer->covered.data + data, writer->covered.bytes - data);
    buffer_put_u8(line, '}');
    *ret_key = key;
    return !line->failed;
}

bool line_is_detection(const char *line, size_t bytes)
{
    return bytes > strlen(opening) && memcmp(line, opening, strlen(opening)) == 0;
}

bool line_key(const char *line, size_t bytes, uint64_t *ret_key)
{
    static const char after[] = "\",\"worker\":\"";
    const char *hex = line + strlen(opening);
    uint64_t key = 0;

    if (!line_is_detection(line, bytes) || bytes > LINE_BYTES_MAX ||
        bytes < strlen(opening) + KEY_DIGITS + strlen(after) + 1 || line[bytes - 1] != '}' ||
        memcmp(hex + KEY_DIGITS, after, strlen(after)) != 0) {
        return false;
    }
    for (size_t i = 0; i < KEY_DIGITS; i++) {
        const char *digit = hex[i] != '\0' ? strchr(digits, hex[i]) : NULL;

        if (digit == NULL) {
            return false;
        }
        key = key << 4 | (uint64_t)(digit - digits);
    }
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)line[i] < 0x20) {
            return false;
        }
    }
    *ret_key = key;
    return true;
}
