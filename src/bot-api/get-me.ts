import type { MethodCall, ResultReply } from './method-call.ts'

/** protocol.md §6: has every field that the reference always sends, because typed clients reject the object without them. */
export function getMe({ queue }: MethodCall): ResultReply {
  const { botId, record } = queue.bot
  return {
    result: JSON.stringify({
      id: botId,
      is_bot: true,
      first_name: record.firstName,
      username: record.username,
      can_join_groups: true,
      can_read_all_group_messages: false,
      supports_inline_queries: false,
      can_connect_to_business: false,
      has_main_web_app: false,
      has_topics_enabled: false,
      allows_users_to_create_topics: false,
      can_manage_bots: false,
      supports_guest_queries: false,
    }),
  }
}
