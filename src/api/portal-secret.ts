/**
 * The secret of a link of the owner's page, which a platform gives to the owner of one bot:
 *
 *     pbo_<bot_id>_<secret>      secret: 32 random bytes in base64url, of which only the SHA-256 is stored, with the bot
 *
 * The prefix lets people and scanners of repositories recognize it, and tells it from a key of the private API. The bot in it
 * leads a page to its bot; only the owner of the bot's shard knows whether the link is valid.
 */

/** The two parts of a secret. */
export interface PortalSecret {
  readonly botId: number
  readonly secret: string
}

const secretBytes = 32

/** Returns a new secret. `randomBytes` must be a CSPRNG (node:crypto's). */
export function newPortalSecret(randomBytes: (count: number) => Buffer): string {
  return randomBytes(secretBytes).toString('base64url')
}

/** Returns the secret as the page of its link sends it. */
export function portalSecretText({ botId, secret }: PortalSecret): string {
  return `pbo_${botId}_${secret}`
}

/** Returns the parts of a secret in an Authorization header; undefined if the header has another shape. */
export function portalSecretIn(authorization: string | undefined): PortalSecret | undefined {
  const [, id, secret] =
    /^Bearer +pbo_([1-9]\d{2,15})_([\w-]{43})$/i.exec(authorization ?? '') ?? []
  return id === undefined || secret === undefined ? undefined : { botId: Number(id), secret }
}
