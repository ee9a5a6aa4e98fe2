/** The links to the owner's page of a bot: listed, created and revoked. A link is shown once, until the reader leaves the page. */
import { actLabels } from '../frame/act-labels.ts'
import { actButton } from '../frame/act.ts'
import type { BotQueueName } from '../frame/page-calls.ts'
import { callForm } from '../elements/call-form.ts'
import { secretField } from '../elements/copy-text.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { buttonsElement, element } from '../elements/element.ts'
import { durationChoice, fieldElement, textField } from '../elements/fields.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { ResultShape } from '../frame/shapes.ts'
import { settingCard } from './setting-card.ts'
import { timeElement } from '../elements/page-part.ts'

type LinkShape = ResultShape<'listPortalLinks'>['links'][number]
type LinkRight = LinkShape['can'][number]

const pauseMs = 5_000

const rights: Readonly<Record<LinkRight, string>> = {
  look: 'see the state and the updates of the bot',
  replay: 'deliver updates again',
  test: 'push a test update',
  check: 'check the endpoint',
}

/** Up to what the server allows. */
const lives = [
  [3_600, '1 hour'],
  [86_400, '1 day'],
  [604_800, '7 days'],
  [2_592_000, '30 days'],
] as const

export function linksPanel(context: PageContext, { botId: id }: BotQueueName): HTMLElement {
  const { api, atEnd, clock, may, poll } = context
  const url = secretField('The link (copy it now: it is not shown again)')
  const none = emptyState({
    title: 'There is no link.',
    text: 'With a link, the owner of the bot sees this bot alone, without a key.',
    isHidden: true,
  })
  let count = 0
  async function refresh(): Promise<void> {
    const { links } = await api.call('listPortalLinks', { id })
    count = links.length
    none.hidden = count > 0
    revokeAll.hidden = !may('manage') || count < 2
    table.show(links)
  }
  const revokeOf = ({ link_id }: LinkShape): HTMLElement =>
    buttonsElement(
      actButton(context, 'revokePortalLink', {
        label: actLabels.revokePortalLink,
        of: link_id,
        question: () => ({
          title: `Revoke the link ${link_id}?`,
          text: 'The page that was opened with it ends at once.',
        }),
        input: () => ({ id, link_id }),
        said: () => `The link ${link_id} is revoked.`,
        after: refresh,
      }),
    )
  const revokeAll = actButton(context, 'revokePortalLinks', {
    label: actLabels.revokePortalLinks,
    question: () => ({
      title: `Revoke all ${count} links?`,
      text: 'The pages that were opened with them end at once.',
    }),
    input: () => ({ id }),
    said: ({ removed }) => `${removed === 1 ? '1 link is' : `${removed} links are`} revoked.`,
    after: refresh,
  })
  const actions = { title: 'Actions', isPlain: true, cell: revokeOf, style: 'actions' }
  const columns = columnsOf(clock)
  const table = dataTable(
    "Links to the owner's page",
    may('manage') ? [...columns, actions] : columns,
  )
  const form = linkForm(context, id, async (issued) => {
    url.show(issued)
    await refresh()
  })
  atEnd(() => url.show(undefined))
  poll(pauseMs, refresh)
  return settingCard(
    "Links to the owner's page",
    'Show this bot alone to its owner. A link works until its end, without a key.',
    may('manage') ? form : undefined,
    url.root,
    none,
    table.root,
    buttonsElement(revokeAll),
  )
}

function linkForm(
  { api }: PageContext,
  id: string,
  onIssued: (url: string) => Promise<void>,
): HTMLElement {
  const life = durationChoice('The link works for', lives, 3_600)
  const origin = textField('origin', 'https://platform.example', 'url')
  const boxes = linkRights.map((right) => {
    const input = element('input', { type: 'checkbox', name: 'can', value: right })
    input.checked = true
    return { right, input, root: element('label', { class: 'check' }, input, rights[right]) }
  })
  const create = async (): Promise<string> => {
    const can = boxes.filter(({ input }) => input.checked).map(({ right }) => right)
    const body = { ttl: life.seconds(), can, origin: origin.value.trim() || undefined }
    const { url } = await api.call('createPortalLink', { id, body })
    // Without --portal, it is a path of the listener that this page is from.
    await onIssued(new URL(url, location.origin).href)
    return 'Copy the link now: it cannot be shown again.'
  }
  return callForm(
    { submit: actLabels.createPortalLink, send: create, kind: 'makes' },
    element(
      'fieldset',
      { class: 'field whole' },
      element('legend', {}, 'Its page may'),
      ...boxes.map(({ root }) => root),
    ),
    life.root,
    fieldElement('Origin whose pages may frame it, if any', origin),
  ).root
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the record has these keys alone
const linkRights = Object.keys(rights) as readonly LinkRight[]

function columnsOf(clock: PageContext['clock']): readonly Column<LinkShape>[] {
  return [
    { title: 'Id', cell: ({ link_id: id }) => id, isHead: true },
    {
      title: 'Its page may',
      cell: ({ can, origin }) =>
        `${can.join(', ')}${origin === null ? '' : `; in a frame of ${origin}`}`,
      style: 'wrap',
    },
    { title: 'Created', cell: (link) => timeElement(clock, link.created_at) },
    { title: 'Ends', cell: (link) => timeElement(clock, link.expires) },
  ]
}
