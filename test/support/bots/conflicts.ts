/** The exact texts of refused polls, which frameworks search for. */

/** The error of a poll that a later one of the same bot ended. */
export const terminated =
  'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'
export const webhookActive =
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
