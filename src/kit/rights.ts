/** What the keys of the private API and the links of the owner's page may be given. The words are stored: do not rename them. */

/** What a key may do (docs/use/api.md), in the order of the documentation. */
export const scopes = ['push', 'read', 'manage', 'all'] as const
export type Scope = (typeof scopes)[number]

/** What a call needs: a scope, or any key at all. */
export type NeededScope = Scope | 'any'

/** What a link of the owner's page may allow, in the order of the documentation. */
export const portalRights = ['look', 'replay', 'test', 'check'] as const
export type PortalRight = (typeof portalRights)[number]
