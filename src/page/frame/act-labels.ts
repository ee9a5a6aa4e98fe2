/**
 * What the reader can do, by the call that does it: one word for one act, wherever the page offers it. The audit and the command
 * line name the same calls, so the word is that of the call, except where people say it better: `replay` is Deliver again, and
 * `retry` is Deliver now.
 */
import type { PageCall } from './page-calls.ts'

export const actLabels = {
  createBot: 'Register',
  changeBot: 'Save',
  removeBot: 'Remove the bot',
  rotateToken: 'Rotate the token',
  setLimits: 'Save',
  setRetention: 'Save',
  changeWebhook: 'Save',
  deleteWebhook: 'Remove the webhook',
  checkWebhook: 'Check the endpoint',
  setRelay: 'Set the relay',
  removeRelay: 'Remove the relay',
  pauseBot: 'Pause deliveries',
  resumeBot: 'Resume deliveries',
  retryBot: 'Deliver now',
  pushUpdate: 'Push a test update',
  pushTestUpdate: 'Push a test update',
  dropUpdate: 'Drop',
  dropDeadLetter: 'Drop',
  dropDeadLetters: 'Drop all',
  eraseUpdates: 'Erase',
  replayUpdate: 'Deliver again',
  replayDeadLetter: 'Deliver again',
  replayDeadLetters: 'Deliver all again',
  startReplay: 'Deliver these again',
  cancelReplay: 'Cancel',
  createKey: 'Create a key',
  rotateKey: 'Rotate',
  revokeKey: 'Revoke',
  addSigningKey: 'Add a signing key',
  removeSigningKey: 'Remove',
  removeSigningKeys: 'Remove all keys',
  createPortalLink: 'Create a link',
  revokePortalLink: 'Revoke',
  revokePortalLinks: 'Revoke all',
} as const satisfies { readonly [Id in PageCall]?: string }
