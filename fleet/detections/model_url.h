/* The URL from which a worker fetches a model: s3:// becomes a pre-signed URL.
 *
 *   http://…, https://…  ──▶ as it is
 *   s3://BUCKET/KEY      ──▶ ENDPOINT/BUCKET/KEY?X-Amz-…                       with an endpoint
 *                            https://BUCKET.s3.REGION.amazonaws.com/KEY?X-Amz-…   without
 *
 * The query is signed by AWS Signature Version 4 and allows one GET of this object, for everybody
 * who has the URL: it is secret, as all URLs of models are. Nothing is asked of the server: a wrong
 * key shows when the worker fetches. No I/O; the time is passed in.
 */
#ifndef FLEET_DETECTIONS_MODEL_URL_H
#define FLEET_DETECTIONS_MODEL_URL_H

#include <baton/error.h>

#include <stdint.h>

enum {
    S3_LIFETIME_S = 60 * 60, /* of a model's URL, as the worker protocol says */
    S3_KEY_MAX = 1024,       /* bytes of an object's key */
};

struct s3_access {
    const char *key_id, *secret; /* NULL: there are none, and s3:// is refused */
    const char *session_token;   /* of credentials that end by themselves; or NULL */
    const char *region;          /* "eu-central-1"; NULL: "us-east-1" */
    const char *endpoint;        /* "http://minio:9000", another server than Amazon's; or NULL */
};

/* *ret is for free(). BATON_EINVAL: not such a URL, or what the access lacks; BATON_ETOOBIG: longer
 * than a worker reads; BATON_ENOMEM. */
int fleet_model_url(char **ret, const char *url, const struct s3_access *access, int64_t now_unix_s,
                    struct baton_error *reterr);

/* The same of an s3:// URL, for a lifetime of 1 s to 7 days. */
int s3_presign(char **ret, const char *url, const struct s3_access *access, int64_t now_unix_s,
               uint32_t lifetime_s, struct baton_error *reterr);

/* Checks what people have set, before there is a URL: BATON_EINVAL. */
int s3_access_check(const struct s3_access *access, struct baton_error *reterr);

#endif
