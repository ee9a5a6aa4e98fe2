/**
 * The calls about the owner's page: links that show one bot to its owner, who has no key, and the test update that such a page
 * sends. What a link may call is told by the field `portal` of each row.
 */
import { portalRights } from '../../kit/rights.ts'
import * as is from '../../api/words.ts'
import { originLengthMax, portalLinkTtlSMax } from '../../api/limits.ts'
import { botPath, declareOperations } from '../../api/operation.ts'
import { pushErrors, pushResult } from '../../api/update-schemas.ts'

const all = `${botPath}/portal` as const

export const portalOperations = declareOperations("owner's page", {
  createPortalLink: {
    route: `POST ${all}`,
    scope: 'manage',
    about: 'bot',
    command: 'portal create',
    done: '{url}',
    more: '#the-owners-page',
    summary: "Creates a link to the owner's page of a bot",
    description:
      'The secret is in the fragment of the URL, which browsers do not send, and is shown only this once. It works until its end, for this bot alone.',
    body: () =>
      is.only({
        ttl: is.duration('Seconds until the link ends.', {
          minimum: 1,
          maximum: portalLinkTtlSMax,
        }),
        can: is.optional(
          is.list(right(), 'What its page may do. Default: all.', {
            minItems: 1,
            maxItems: portalRights.length,
            uniqueItems: true,
          }),
        ),
        origin: is.optional(
          is.text(
            'an origin in lower case, such as https://platform.example, whose pages may show the page in a frame',
            {
              maxLength: originLengthMax,
              pattern:
                '^https://(?!.*\\.\\.)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[1-9][0-9]{0,4})?$',
            },
          ),
        ),
      }),
    result: () =>
      is.named('NewPortalLink', 'The link, on disk.', {
        ...link(),
        url: is.text('The link with its secret. It is shown only this once.'),
      }),
    errors: ['TOO_MANY_LINKS'],
  },
  listPortalLinks: {
    route: `GET ${all}`,
    scope: 'read',
    about: 'bot',
    command: 'portal list',
    columns: ['link_id', 'can', 'origin', 'created_at', 'expires'],
    none: 'no links',
    summary: "Lists the links to the owner's page of a bot, without their secrets",
    result: () =>
      is.named('PortalLinkList', 'The links that have not ended, the oldest first.', {
        links: is.list(is.named('PortalLink', link())),
      }),
  },
  revokePortalLinks: {
    route: `DELETE ${all}`,
    scope: 'manage',
    about: 'bot',
    command: 'portal revoke',
    done: 'revoked {removed}',
    summary: "Revokes all links to the owner's page of a bot",
    result: () => is.removedCount(),
  },
  revokePortalLink: {
    route: `DELETE ${all}/:link_id`,
    scope: 'manage',
    about: 'bot',
    command: 'portal revoke',
    done: 'revoked {removed}',
    summary: "Revokes a link to the owner's page of a bot, and what it has open",
    result: () => is.removedCount(),
    errors: ['UNKNOWN_LINK'],
  },
  pushTestUpdate: {
    route: `POST ${botPath}/test-update`,
    scope: 'manage',
    about: 'queue',
    portal: 'test',
    more: '#the-owners-page',
    summary: 'Pushes a message that says that it is a test',
    description:
      'The message comes from the bot itself, in a chat with itself, so that a response to it reaches nobody.',
    result: () => pushResult(),
    errors: pushErrors,
  },
})

function right() {
  return is.oneOf(portalRights)
}

function link() {
  return {
    link_id: is.text('The id of the link, which is no secret.'),
    created_at: is.time('When it was made.'),
    expires: is.time('When it ends.'),
    can: is.list(right()),
    origin: is.orNull(is.text('Whose pages may frame the page.')),
  }
}
