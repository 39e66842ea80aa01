/* The words of a command on their way to another process: its arguments and its variables, in a
 * memfd, so that they may be as long as execve(2) permits.
 *
 *   sh\0-c\0echo hello\0   BATON_NODE=a\0BATON_EPOCH=7\0
 */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include <stdint.h>

struct words {
    int fd;             /* -1: none */
    uint32_t arguments; /* how many, and they come first */
    uint32_t variables; /* as putenv(3) takes them: "NAME" is removed from the environment */
};

/* Both lists end with NULL. Returns 0 and the words, of which the caller closes the descriptor; or
 * an errno. */
int words_write(struct words *ret, char *const *arguments, char *const *variables);

/* Maps the words and returns both lists, ended by NULL, as long as the process lives: it runs the
 * command, and nothing else. Returns 0 or an errno; EBADMSG: there are fewer words than promised.
 */
int words_read(char ***ret_arguments, char ***ret_variables, const struct words *words);

#endif
