/** The part of pino that this folder uses: a method takes fields and a sentence. */
export interface Log {
  debug(fields: object, text: string): void
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}
