/**
 * Keeps SIGUSR1 from opening the inspector of Node.js, through which any user of the machine could run code in this process.
 * Node.js opens it at a SIGUSR1 without a listener, so entry files import this before anything else. A signal that was
 * faster has opened it, or makes the event loop open it in its first turn: it is closed again.
 */
import { close, url } from 'node:inspector'
import { systemClock } from '../../kit/clock.ts'

/** Whether somebody wants to inspect this process, as the bench does. */
const isWanted = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].some((flags) =>
  /--inspect(?!-port)/.test(flags),
)

/** Runs when this file is imported. */
export function refuseInspector(): void {
  process.on('SIGUSR1', () => undefined)
  closeInspector()
  systemClock.soon(closeInspector)
}

function closeInspector(): void {
  if (!isWanted && url() !== undefined) close()
}

refuseInspector()
