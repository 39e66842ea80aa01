/* The file of --s3-credentials, and the rest of how models at s3:// are reached. */
#ifndef FLEET_PROGRAM_S3_CREDENTIALS_H
#define FLEET_PROGRAM_S3_CREDENTIALS_H

#include "fleet/detections/model_url.h"

enum { S3_CREDENTIALS_LINE_MAX = 256 };

struct s3_credentials {
    struct s3_access access; /* points into this struct */
    char key_id[S3_CREDENTIALS_LINE_MAX], secret[S3_CREDENTIALS_LINE_MAX];
};

/* The file has two lines, the key's id and its secret. Without a file (NULL) there are none. Texts
 * are borrowed. BATON_EAUTH: other users can read it; BATON_EINVAL. No error quotes it.
 */
int s3_credentials_read(struct s3_credentials *ret, const char *path, const char *endpoint,
                        const char *region, struct baton_error *reterr);

#endif
