/** Typed wrapper of the native addon `poll_once`. `poll_once.c` documents its function. */
import { loadAddon } from './load-addon.ts'

/**
 * Stops the event loop from asking the system twice for what is ready, at each time that nothing is.
 *
 * @returns false if that is not known to be possible with this Node.js; nothing has changed then
 */
export function pollOnce(): boolean {
  try {
    return loadAddon<{ pollOnce(): boolean }>('poll_once').pollOnce()
  } catch {
    // It costs a system call, and nothing else depends on it.
    return false
  }
}
