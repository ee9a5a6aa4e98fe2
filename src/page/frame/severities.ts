/** The states that need attention, the worst first. */
export const severities = ['failing', 'unpolled', 'degraded', 'behind'] as const
