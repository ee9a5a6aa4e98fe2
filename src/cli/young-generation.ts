/**
 * Keeps V8's memory for young objects as small as it is now, about a megabyte.
 *
 * For the primary process: every connection passes through it, and what node:net has made for one survives a few
 * collections until its native handle is let go of, which V8 takes as the sign to double that memory, up to 32 MiB. Of
 * 10,000 polls that begin to wait, that was 3.8 kB each; it is 1.7 kB so, at the same CPU time a connection. A worker
 * is left as it is.
 *
 * `--max-semi-space-size` means the same and is documented, but is read at the start of a process only.
 */
import { setFlagsFromString } from 'node:v8'

export function keepYoungGenerationSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}
