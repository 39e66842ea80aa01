/* Signature Version 4 in the query, as the S3 API reference has it ("Authenticating Requests: Using
 * Query Parameters"):
 *
 *   canonical = GET \n PATH \n QUERY \n host:HOST \n \n host \n UNSIGNED-PAYLOAD
 *   to sign   = AWS4-HMAC-SHA256 \n TIME \n DATE/REGION/s3/aws4_request \n hex(SHA-256(canonical))
 *   key       = HMAC(HMAC(HMAC(HMAC("AWS4" SECRET, DATE), REGION), "s3"), "aws4_request")
 *   signature = hex(HMAC(key, to sign))
 */
#include "fleet/detections/model_url.h"

#include "base/buffer.h"
#include "base/error.h"
#include "protocol/protocol.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { DIGEST_BYTES = 32, BUCKET_MIN = 3, BUCKET_MAX = 63, LIFETIME_MAX_S = 7 * 24 * 60 * 60 };

static const char scheme[] = "s3://";
static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";

struct object {
    const char *bucket, *key; /* point into the URL */
    size_t bucket_bytes;
};

struct target {
    const char *scheme; /* "https://" */
    char host[512];     /* as in the header Host */
    bool is_in_path;    /* the bucket, else in the host */
};

struct moment {
    char day[16], time[24];
};

/* ---- What is asked for ----------------------------------------------------------------------- */

static int parse(struct object *ret, const char *url, struct baton_error *reterr)
{
    const char *bucket = url + strlen(scheme);
    size_t bytes = strcspn(bucket, "/");

    if (strncasecmp(url, scheme, strlen(scheme)) != 0 || bytes < BUCKET_MIN || bytes > BUCKET_MAX ||
        strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-.") != bytes ||
        strchr(lower, bucket[0]) == NULL || bucket[bytes] != '/' || bucket[bytes + 1] == '\0') {
        return error_set(reterr, BATON_EINVAL,
                         "model URL \"%.100s\": must be s3://BUCKET/KEY, the bucket of %d to %d "
                         "small letters, digits, - and .",
                         url, BUCKET_MIN, BUCKET_MAX);
    }
    if (strlen(bucket + bytes + 1) > S3_KEY_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "model URL \"%.100s…\": its key has %zu bytes: at most %d", url,
                         strlen(bucket + bytes + 1), S3_KEY_MAX);
    }
    *ret = (struct object){bucket, bucket + bytes + 1, bytes};
    return BATON_OK;
}

static const char *region_of(const struct s3_access *access)
{
    return access->region != NULL ? access->region : "us-east-1";
}

/* A client leaves the scheme's own port out of the header. */
static void drop_port(char *host, const char *port)
{
    size_t bytes = strlen(host), port_bytes = strlen(port);

    if (bytes > port_bytes && strcmp(host + bytes - port_bytes, port) == 0) {
        host[bytes - port_bytes] = '\0';
    }
}

static int read_endpoint(struct target *ret, const char *endpoint, struct baton_error *reterr)
{
    bool is_tls = strncasecmp(endpoint, "https://", 8) == 0;
    const char *host = endpoint + (is_tls ? 8 : 7);
    size_t bytes;

    if (!is_tls && strncasecmp(endpoint, "http://", 7) != 0) {
        host = "";
    }
    bytes = strcspn(host, "/?#@ ");
    if (bytes == 0 || bytes >= sizeof(ret->host) ||
        (host[bytes] != '\0' && strcmp(host + bytes, "/") != 0)) {
        return error_set(reterr, BATON_EINVAL,
                         "the S3 endpoint (--s3-endpoint) must be http://HOST[:PORT] or "
                         "https://HOST[:PORT], without a path or a user");
    }
    *ret = (struct target){.scheme = is_tls ? "https://" : "http://", .is_in_path = true};
    memcpy(ret->host, host, bytes);
    drop_port(ret->host, is_tls ? ":443" : ":80");
    return BATON_OK;
}

/* A bucket with a dot is not covered by Amazon's certificate, so it goes into the path. */
static int choose(struct target *ret, const struct object *object, const struct s3_access *access,
                  struct baton_error *reterr)
{
    const char *region = region_of(access);
    bool is_first = strcmp(region, "us-east-1") == 0; /* its host has no region */

    if (access->endpoint != NULL) {
        return read_endpoint(ret, access->endpoint, reterr);
    }
    ret->scheme = "https://";
    ret->is_in_path = memchr(object->bucket, '.', object->bucket_bytes) != NULL;
    (void)snprintf(ret->host, sizeof(ret->host), "%.*s%ss3%s%s.amazonaws.com",
                   ret->is_in_path ? 0 : (int)object->bucket_bytes, object->bucket,
                   ret->is_in_path ? "" : ".", is_first ? "" : ".", is_first ? "" : region);
    return BATON_OK;
}

int s3_access_check(const struct s3_access *access, struct baton_error *reterr)
{
    const char *region = region_of(access);
    struct target target;

    if ((access->key_id == NULL) != (access->secret == NULL)) {
        return error_set(reterr, BATON_EINVAL,
                         "S3 needs both an access key's id and its secret, or neither");
    }
    if (strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(region) ||
        region[0] == '\0' || strlen(region) > BUCKET_MAX) {
        return error_set(reterr, BATON_EINVAL,
                         "the S3 region is \"%.64s\": must be as \"eu-central-1\"", region);
    }
    return access->endpoint != NULL ? read_endpoint(&target, access->endpoint, reterr) : BATON_OK;
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void put_encoded(struct buffer *buffer, const char *text, size_t bytes, bool keeps_slashes)
{
    static const char plain[] = "-._~";

    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c != '\0' && strchr(plain, c) != NULL) ||
                        (c == '/' && keeps_slashes);

        if (is_plain) {
            buffer_put_u8(buffer, c);
        } else {
            buffer_printf(buffer, "%%%02X", c);
        }
    }
}

static void put_path(struct buffer *buffer, const struct object *object, bool is_bucket_in_path)
{
    buffer_put_u8(buffer, '/');
    if (is_bucket_in_path) {
        put_encoded(buffer, object->bucket, object->bucket_bytes, false);
        buffer_put_u8(buffer, '/');
    }
    put_encoded(buffer, object->key, strlen(object->key), true);
}

/* In the order of the names, as the signature wants it. */
static void put_query(struct buffer *buffer, const struct s3_access *access,
                      const struct moment *now, uint32_t lifetime_s)
{
    buffer_put_text(buffer, "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
    put_encoded(buffer, access->key_id, strlen(access->key_id), false);
    buffer_printf(buffer, "%%2F%s%%2F%s%%2Fs3%%2Faws4_request&X-Amz-Date=%s&X-Amz-Expires=%u",
                  now->day, region_of(access), now->time, lifetime_s);
    if (access->session_token != NULL) {
        buffer_put_text(buffer, "&X-Amz-Security-Token=");
        put_encoded(buffer, access->session_token, strlen(access->session_token), false);
    }
    buffer_put_text(buffer, "&X-Amz-SignedHeaders=host");
}

static void put_hex(struct buffer *buffer, const unsigned char digest[DIGEST_BYTES])
{
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        buffer_printf(buffer, "%02x", digest[i]);
    }
}

static int read_moment(struct moment *ret, int64_t now_unix_s, struct baton_error *reterr)
{
    time_t now = (time_t)now_unix_s;
    struct tm utc;

    if (now_unix_s < 0 || gmtime_r(&now, &utc) == NULL ||
        strftime(ret->day, sizeof(ret->day), "%Y%m%d", &utc) == 0 ||
        strftime(ret->time, sizeof(ret->time), "%Y%m%dT%H%M%SZ", &utc) == 0) {
        return error_set(reterr, BATON_EINVAL, "the time %lld is none that S3 knows",
                         (long long)now_unix_s);
    }
    return BATON_OK;
}

/* ---- Signing --------------------------------------------------------------------------------- */

/* key := HMAC(key, text) */
static bool chain(unsigned char key[DIGEST_BYTES], const void *text, size_t bytes)
{
    unsigned char from[DIGEST_BYTES];

    memcpy(from, key, DIGEST_BYTES);
    return HMAC(EVP_sha256(), from, DIGEST_BYTES, text, bytes, key, NULL) != NULL;
}

static bool derive_key(unsigned char ret[DIGEST_BYTES], const struct s3_access *access,
                       const struct moment *now)
{
    struct buffer first;
    bool is_done;

    buffer_init(&first, PROTOCOL_URL_MAX);
    buffer_printf(&first, "AWS4%s", access->secret);
    is_done = !first.failed &&
              HMAC(EVP_sha256(), first.data, (int)first.bytes, (const unsigned char *)now->day,
                   strlen(now->day), ret, NULL) != NULL &&
              chain(ret, region_of(access), strlen(region_of(access))) && chain(ret, "s3", 2) &&
              chain(ret, "aws4_request", strlen("aws4_request"));
    if (first.data != NULL) {
        OPENSSL_cleanse(first.data, first.bytes);
    }
    buffer_fini(&first);
    return is_done;
}

static bool sign(unsigned char ret[DIGEST_BYTES], const struct buffer *canonical,
                 const struct s3_access *access, const struct moment *now)
{
    unsigned char digest[DIGEST_BYTES];
    struct buffer text;
    bool is_done = false;

    buffer_init(&text, PROTOCOL_URL_MAX);
    if (EVP_Digest(canonical->data, canonical->bytes, digest, NULL, EVP_sha256(), NULL) == 1) {
        buffer_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n", now->time, now->day,
                      region_of(access));
        put_hex(&text, digest);
        is_done = !text.failed && derive_key(ret, access, now) && chain(ret, text.data, text.bytes);
    }
    buffer_fini(&text);
    return is_done;
}

static bool build(struct buffer *url, struct buffer *canonical, const struct object *object,
                  const struct target *target, const struct s3_access *access,
                  const struct moment *now, uint32_t lifetime_s)
{
    unsigned char signature[DIGEST_BYTES];

    buffer_put_text(canonical, "GET\n");
    put_path(canonical, object, target->is_in_path);
    buffer_put_u8(canonical, '\n');
    put_query(canonical, access, now, lifetime_s);
    buffer_printf(canonical, "\nhost:%s\n\nhost\nUNSIGNED-PAYLOAD", target->host);
    if (canonical->failed || !sign(signature, canonical, access, now)) {
        return false;
    }
    buffer_printf(url, "%s%s", target->scheme, target->host);
    put_path(url, object, target->is_in_path);
    buffer_put_u8(url, '?');
    put_query(url, access, now, lifetime_s);
    buffer_put_text(url, "&X-Amz-Signature=");
    put_hex(url, signature);
    return !url->failed;
}

int s3_presign(char **ret, const char *url, const struct s3_access *access, int64_t now_unix_s,
               uint32_t lifetime_s, struct baton_error *reterr)
{
    struct buffer signed_url, canonical;
    struct object object;
    struct target target;
    struct moment now;
    int code;

    if (access->key_id == NULL || access->secret == NULL) {
        return error_set(reterr, BATON_EINVAL,
                         "model URL \"%.100s\": S3 needs an access key and its secret", url);
    }
    if (lifetime_s == 0 || lifetime_s > LIFETIME_MAX_S) {
        return error_set(reterr, BATON_EINVAL, "a lifetime of %u s: must be 1 s to 7 days",
                         lifetime_s);
    }
    if ((code = parse(&object, url, reterr)) != BATON_OK ||
        (code = choose(&target, &object, access, reterr)) != BATON_OK ||
        (code = read_moment(&now, now_unix_s, reterr)) != BATON_OK) {
        return code;
    }
    buffer_init(&signed_url, PROTOCOL_URL_MAX);
    buffer_init(&canonical, (size_t)2 * PROTOCOL_URL_MAX);
    if (build(&signed_url, &canonical, &object, &target, access, &now, lifetime_s)) {
        *ret = strndup((const char *)signed_url.data, signed_url.bytes);
        code = *ret != NULL ? BATON_OK : error_set(reterr, BATON_ENOMEM, "out of memory for a URL");
    } else {
        code = error_set(reterr, BATON_ETOOBIG,
                         "model URL \"%.100s\": cannot be signed in the %d bytes that a worker "
                         "reads; use a shorter key or session token",
                         url, PROTOCOL_URL_MAX);
    }
    buffer_fini(&signed_url);
    buffer_fini(&canonical);
    return code;
}

int fleet_model_url(char **ret, const char *url, const struct s3_access *access, int64_t now_unix_s,
                    struct baton_error *reterr)
{
    if (strncasecmp(url, scheme, strlen(scheme)) == 0) {
        return s3_presign(ret, url, access, now_unix_s, S3_LIFETIME_S, reterr);
    }
    *ret = strdup(url);
    return *ret != NULL ? BATON_OK : error_set(reterr, BATON_ENOMEM, "out of memory for a URL");
}
