/**
 * Keeps a bot's token so that only this server can read it: needed where replies of webhooks are sent on in the
 * bot's name (`--upstream`), and nowhere else. Of a token nothing else is stored than its hash.
 *
 *     base64url( nonce 12 | tag 16 | AES-256-GCM(token) )    keys by HKDF-SHA-256 from the admin key
 *
 * The nonce is an HMAC of the token, so that the same token gives the same text: setWebhook can compare whether
 * anything has changed, and a nonce comes twice only for the same text. Whoever has the data directory but not
 * the admin key (kept elsewhere by `--admin-key-file`) cannot read it; with another admin key it is void, and
 * the bot's next setWebhook seals it anew. The format is on disk: do not change it.
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

  /** Undefined where it was sealed with another admin key, or is not what was sealed. */
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
