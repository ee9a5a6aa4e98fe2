/** The path of a bot, below which most calls are. */
export const botPath = '/v1/bots/:id'
