/* The certificate of a camera that is spoken to by rtsps.
 *
 * FFmpeg checks none unless told to, and its RTSP reader could not be told before FFmpeg 8. Where
 * it cannot, and its TLS is GnuTLS (as Debian's is), this program stands in the way of the
 * handshake: what GnuTLS made of the certificate is asked before FFmpeg may send a word, such as a
 * password. Where neither is so, the camera is not opened.
 */
#ifndef DETECTOR_CAMERA_TLS_H
#define DETECTOR_CAMERA_TLS_H

#include "detector/camera/message.h"

#include <libavutil/dict.h>

/* Before an rtsps camera is opened; `config` is borrowed for good. Adds what FFmpeg takes to the
 * options. BATON_ENOTSUP: this FFmpeg can check nothing. BATON_EINVAL: the URL. */
int tls_prepare(const struct camera_config *config, AVDictionary **options,
                struct baton_error *reterr);

/* Once it is open: BATON_ENOTSUP if nobody has looked at the certificate although they should. */
int tls_check(const struct camera_config *config, struct baton_error *reterr);

/* What is wrong with the certificate that was seen last; NULL: nothing, or none was seen. */
const char *tls_fault(void);

#endif
