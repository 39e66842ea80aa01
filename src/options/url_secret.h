/* Finds the passwords within a URL that a program got, and hides them from other users.
 *
 *     redis://USER:PASSWORD@HOST/0?sentinel-password=PASSWORD&lease=30s
 *             ^^^^^^^^^^^^^                          ^^^^^^^^
 */
#ifndef OPTIONS_URL_SECRET_H
#define OPTIONS_URL_SECRET_H

#include <stdbool.h>

bool secret_is_in(const char *url);
/* Overwrites them with stars, in place. */
void secret_hide(char *url);
/* The same of any word, if it is a URL. Returns it. */
char *secret_hide_word(char *word);
/* Overwrites all behind the host, too. */
void secret_hide_path(char *url);
/* Whether its passwords were overwritten so. */
bool secret_is_hidden(const char *url);

#endif
