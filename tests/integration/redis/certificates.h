/* Certificates made for a test, the right ones and the wrong: NAME.crt and NAME.key in a folder. */
#ifndef TESTS_INTEGRATION_REDIS_CERTIFICATES_H
#define TESTS_INTEGRATION_REDIS_CERTIFICATES_H

#include "integration/redis/server.h"

#include <stddef.h>

/* A fresh folder with authorities "ca" and "other-ca"; of the former, servers "right" (localhost,
 * redis.test, 127.0.0.1), "elsewhere" and "expired", and "client"; of the latter, "stranger". */
void certificates_make(char *ret_folder, size_t ret_bytes);

/* The server will show this one, on a port that is returned. wants_clients: "yes", "no". */
int certificates_serve(struct server *server, const char *folder, const char *name,
                       const char *wants_clients);

#endif
