#include "cli/http_options.h"

#include "base/value.h"
#include "cli/settings.h"

int http_options_read(struct http_config *ret, struct http_options *space,
                      const struct options *options, struct baton_error *reterr)
{
    const char *address = options_text(options, "http");
    const char *token_file = options_text(options, "http-token-file");
    int code;

    *space = (struct http_options){0};
    if (!address) {
        return BATON_OK;
    }
    ret->host = space->host;
    ret->hosts = options_list(options, "http-host");
    ret->token = token_file ? space->token : NULL;
    code = value_address(address, true, space->host, sizeof(space->host), &ret->port, reterr);
    return !code && token_file
               ? settings_token(space->token, sizeof(space->token), token_file, reterr)
               : code;
}
