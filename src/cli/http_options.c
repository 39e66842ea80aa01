#include "cli/http_options.h"

#include "base/value.h"
#include "options/program.h"

int http_options_read(struct http_config *ret, struct http_options *space,
                      const struct options *options, struct baton_error *reterr)
{
    const char *address = options_text(options, "http");
    int code;

    *space = (struct http_options){0};
    if (!address) {
        return BATON_OK;
    }
    ret->host = space->host;
    ret->hosts = options_list(options, "http-host");
    code = value_address(address, true, space->host, sizeof(space->host), &ret->port, reterr);
    return code ? code
                : program_token(&ret->token, space->token, sizeof(space->token), options,
                                "http-token-file", reterr);
}
