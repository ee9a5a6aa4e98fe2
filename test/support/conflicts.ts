/** What a poll is refused with, word for word: frameworks look for these texts. */

/** Another poll of the same bot came after it. */
export const terminated =
  'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'
export const webhookActive =
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
