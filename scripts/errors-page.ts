/** Generates docs/errors.md from the registry of errors. */
import { errorKinds } from '../src/errors.ts'

export function errorsPage(): string {
  const rows = Object.entries(errorKinds).map(
    ([code, { status, description }]) => `| \`${code}\` | ${status} | ${cell(description)} |`,
  )
  const lines = [
    '# Errors',
    '',
    '<!-- Generated from src/errors.ts by scripts/generate-docs.ts: change it there. -->',
    '',
    'The bot API answers `{"ok":false,"error_code":<status>,"description":"<text>"}`, with',
    '`"parameters":{"retry_after":<seconds>}` where it makes sense to wait. The private API answers',
    '`{"error":{"code":"<code>","message":"<text>"}}`, in a stream as the line of the pair. Codes are stable and',
    'never used for anything else; texts may change, except those of the bot API that frameworks compare. `%s` stands for',
    'the particulars.',
    '',
    '| code | status | text |',
    '|---|---|---|',
    ...rows,
  ]
  return `${lines.join('\n')}\n`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;')
}
