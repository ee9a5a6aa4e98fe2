/**
 * Encrypts a bot's token so that only this server can read it. This is needed only where replies of webhooks are sent
 * in the bot's name (`--upstream`); otherwise only the hash of a token is stored.
 *
 *     base64url( nonce 12 | tag 16 | AES-256-GCM(token) )    keys by HKDF-SHA-256 from the admin key
 *
 * The nonce is an HMAC of the token, so the same token always has the same sealed text: setWebhook can detect whether
 * anything has changed, and a nonce repeats only for the same text. A thief of the data directory cannot read the token
 * without the admin key (which `--admin-key-file` keeps elsewhere). With another admin key the sealed text is void, and
 * the bot's next setWebhook seals the token anew. The format is on disk: do not change it.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'

const cipherName = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

export class TokenSeal {
  readonly #cipherKey: Buffer
  readonly #nonceKey: Buffer

  constructor(adminKey: string) {
    this.#cipherKey = derive(adminKey, 'postbote token seal: cipher')
    this.#nonceKey = derive(adminKey, 'postbote token seal: nonce')
  }

  seal(token: string): string {
    const nonce = createHmac('sha256', this.#nonceKey)
      .update(token)
      .digest()
      .subarray(0, nonceBytes)
    const cipher = createCipheriv(cipherName, this.#cipherKey, nonce)
    const text = Buffer.concat([cipher.update(token, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url')
  }

  /** Returns the token, or undefined if it was sealed with another admin key or the text was not sealed here. */
  open(sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.length <= nonceBytes + tagBytes) return undefined
    const nonce = bytes.subarray(0, nonceBytes)
    const decipher = createDecipheriv(cipherName, this.#cipherKey, nonce, {
      authTagLength: tagBytes,
    })
    decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
    try {
      const text = decipher.update(bytes.subarray(nonceBytes + tagBytes))
      return Buffer.concat([text, decipher.final()]).toString()
    } catch {
      return undefined
    }
  }
}

function derive(adminKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', adminKey, '', purpose, 32))
}
