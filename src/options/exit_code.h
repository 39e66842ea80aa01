/* The exit codes of `baton`, `baton-fleet` and `baton-detector`. They are part of the interface:
 * scripts and units rely on them, the man pages list them, and their meaning never changes.
 *
 * They follow sysexits(3), timeout(1) and the shell where those have a code for the same case, and
 * avoid the small numbers that programs under `baton run` usually end with.
 */
#ifndef OPTIONS_EXIT_CODE_H
#define OPTIONS_EXIT_CODE_H

/* X(symbol, number, text) */
#define EXIT_CODES(X)                                                                              \
    X(EXIT_OK, 0, "done; run and once end with CMD's exit code")                                   \
    X(EXIT_REFUSED, 1, "the group refused the request, or could not carry it out")                 \
    X(EXIT_USAGE_WRONG, 64,                                                                        \
      "usage: an unknown flag, a wrong or missing value, a missing file, or a configuration file " \
      "that was refused")                                                                          \
    X(EXIT_UNAVAILABLE, 69, "the provider or the node cannot be reached")                          \
    X(EXIT_STORAGE, 74,                                                                            \
      "the disk failed or is full; the port to listen on is taken; or another process uses the "   \
      "data directory")                                                                            \
    X(EXIT_LOST, 75, "leadership was lost while CMD ran; CMD has been stopped (--on-loss exit)")   \
    X(EXIT_DENIED, 77,                                                                             \
      "not authenticated or not allowed: missing or wrong credentials; a key or data directory "   \
      "that other users can reach, or a data directory that this user may not write")              \
    X(EXIT_UNSAFE, 78,                                                                             \
      "unsafe: two nodes could lead, or none could ever lead again; or the data directory is "     \
      "damaged or of another format")                                                              \
    X(EXIT_TIMED_OUT, 124, "timed out")                                                            \
    X(EXIT_CANNOT_RUN, 126, "CMD was found and could not be run")                                  \
    X(EXIT_NOT_FOUND, 127, "CMD was not found")                                                    \
    X(EXIT_SIGNAL, 128, "plus N: CMD, or baton itself, was ended by signal N")

enum exit_code {
#define EXIT_CODE_ENUM(symbol, number, text) symbol = (number),
    EXIT_CODES(EXIT_CODE_ENUM)
#undef EXIT_CODE_ENUM
};

/* Returns the exit code for a BATON_E… code. */
enum exit_code exit_code_of_error(int code);

/* Errors before the start come from this machine or from a flag: no group has refused anything yet.
 * Returns the code that says so. */
int exit_code_local_error(int code);

#endif
