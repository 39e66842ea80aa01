#include "web/host.h"

#include "base/host.h"

#include <arpa/inet.h>
#include <string.h>

bool web_is_address(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

bool web_host_name(const char *text, char ret[static WEB_HOST_MAX])
{
    const char *begin = text;
    size_t length = strcspn(text, ":");
    if (*text == '[') {
        begin = text + 1;
        length = strcspn(begin, "]");
    }
    if (length == 0 || length >= WEB_HOST_MAX) {
        return false;
    }
    memcpy(ret, begin, length);
    ret[length] = '\0';
    return true;
}

bool web_host_is_ours(const char *host, const char *const *hosts, const char *text)
{
    char name[WEB_HOST_MAX];

    if (!web_host_name(text, name)) {
        return false;
    }
    if (strcasecmp(name, host) == 0 || (host_is_loopback(host) && host_is_loopback(name))) {
        return true;
    }
    for (size_t i = 0; hosts && hosts[i]; i++) {
        if (strcasecmp(name, hosts[i]) == 0) {
            return true;
        }
    }
    return false;
}
