/** The addons that accept and encode updates. Nothing else does, so a server that lacks one of them does not start. */
import { keyHasher } from './key-hasher.ts'
import { loadAddon } from './load-addon.ts'
import { pairScanner } from './pair-scanner.ts'
import { recordEncoder } from './record-encoder.ts'

/** @throws Error that names the addon that was not built, and the command that builds it. */
export function loadIngestAddons(): void {
  pairScanner()
  loadAddon('check_updates')
  keyHasher()
  recordEncoder()
}
