/* The version of all programs of this tree. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define BATON_VERSION_TEXT "0.1.0"

#endif
