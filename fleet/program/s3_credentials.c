#include "fleet/program/s3_credentials.h"

#include "base/error.h"
#include "base/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Without the line's end. False: there is no line, it is too long or empty. */
static bool read_line(FILE *file, char ret[static S3_CREDENTIALS_LINE_MAX])
{
    size_t bytes;

    if (!fgets(ret, S3_CREDENTIALS_LINE_MAX, file)) {
        return false;
    }
    bytes = strcspn(ret, "\r\n");
    if (ret[bytes] == '\0' && !feof(file)) {
        return false;
    }
    ret[bytes] = '\0';
    return bytes > 0;
}

static int read_file(struct s3_credentials *ret, const char *path, struct baton_error *reterr)
{
    FILE *file = fopen(path, "re");
    struct stat about;
    int code = BATON_OK;

    if (!file) {
        return error_set(reterr, BATON_EINVAL, "--s3-credentials %s: %s", path, strerror(errno));
    }
    if (fstat(fileno(file), &about) != 0 || !secret_is_private(&about)) {
        code = error_set(reterr, BATON_EAUTH,
                         "--s3-credentials %s: other users can read it (chmod 600)", path);
    } else if (!read_line(file, ret->key_id) || !read_line(file, ret->secret)) {
        code = error_set(reterr, BATON_EINVAL,
                         "--s3-credentials %s: must have two lines, the key's id and the secret",
                         path);
    }
    (void)fclose(file);
    return code;
}

int s3_credentials_read(struct s3_credentials *ret, const char *path, const char *endpoint,
                        const char *region, struct baton_error *reterr)
{
    int code = path ? read_file(ret, path, reterr) : BATON_OK;

    ret->access = (struct s3_access){.key_id = path ? ret->key_id : NULL,
                                     .secret = path ? ret->secret : NULL,
                                     .region = region,
                                     .endpoint = endpoint};
    return code ? code : s3_access_check(&ret->access, reterr);
}
