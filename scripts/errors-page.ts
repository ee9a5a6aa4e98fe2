/** Generates docs/reference/errors.md from the registry of errors. */
import { errorKinds } from '../src/kit/errors.ts'

export function errorsPage(): string {
  const rows = Object.entries(errorKinds).map(
    ([code, { status, description }]) => `| \`${code}\` | ${status} | ${cell(description)} |`,
  )
  const lines = [
    '# Errors',
    '',
    '<!-- Generated from src/kit/errors.ts by scripts/generate-docs.ts: change it there. -->',
    '',
    'This page lists every error for developers of bots and producers. An error response of the bot API is',
    '`{"ok":false,"error_code":<status>,"description":"<text>"}`. It has `"parameters":{"retry_after":<seconds>}` and the',
    'header Retry-After if the call may succeed after a wait; every 429 and every 503 has both. An error response of the',
    'private API is `{"error":{"code":"<code>","message":"<text>"}}`, with the same header; in a stream, this is the line of',
    'the pair. Codes are stable and are never reused. Texts may change, except texts of the bot API that frameworks compare.',
    '`%s` stands for details of the error.',
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
