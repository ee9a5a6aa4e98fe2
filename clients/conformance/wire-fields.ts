/**
 * What the table of operations has for the calls of clients: their fields, and the options of a push. A client that
 * leaves one out, or sends another, does not conform, so a field that is added to the table is missed in every language.
 */
import type { TSchema } from 'typebox'
import { botOperations } from '../../src/features/bots/bot-operations.ts'
import { pairHeader, updateOperations } from '../../src/features/ingest/update-operations.ts'

const { pushUpdate } = updateOperations

/** The names, sorted. */
export const wireFields = {
  createBot: fieldsOf(botOperations.createBot.body()),
  getBot: [],
  rotateToken: fieldsOf(botOperations.rotateToken.body()),
  removeBot: [],
  /** The head of a pair. */
  pair: fieldsOf(pairHeader()),
  /** Query parameters and headers. */
  push: [
    ...Object.keys(pushUpdate.query()),
    ...fieldsOf(pushUpdate.headers()).map((name) => name.toLowerCase()),
  ].toSorted(),
}

/** The fields of an object, or of the one of a union with null. */
function fieldsOf(schema: TSchema): string[] {
  const { properties, anyOf = [] }: Fields = schema
  if (properties !== undefined) return Object.keys(properties).toSorted()
  return anyOf.flatMap(fieldsOf)
}

interface Fields {
  readonly properties?: object
  readonly anyOf?: readonly TSchema[]
}
