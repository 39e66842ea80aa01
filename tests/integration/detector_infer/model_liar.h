/* What model_liar can be asked for: it is the first byte of its archive. */
#ifndef TESTS_MODEL_LIAR_H
#define TESTS_MODEL_LIAR_H

enum lie {
    LIE_NONE,
    LIE_NOTHING,     /* ends without a word */
    LIE_CRASH_FIRST, /* before it is given the archive */
    LIE_CRASH,
    LIE_SILENT,
    LIE_CLOSED, /* closes its socket and lives */
    LIE_HALF,   /* of an answer */
    LIE_CODE,   /* above 0 */
    LIE_ERROR,  /* with letters that a terminal obeys */
    LIE_LONG_TEXT,
    LIE_BAD_PIPELINE,
};

#endif
