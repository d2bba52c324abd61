import type { Page, PageRequest } from "../../store/control-store.ts";

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface ListAnswer<Item> {
  readonly data: Item[];
  readonly next_cursor: string | null;
}

export function pageRequest({ limit, cursor }: PageQuery): PageRequest {
  return { limit, after: cursor };
}

/** A page of a list as the API shows it. */
export function listAnswer<Entity, Item>(
  page: Page<Entity>,
  view: (entity: Entity) => Item,
): ListAnswer<Item> {
  return { data: page.items.map(view), next_cursor: page.next ?? null };
}

/** The list of another account, which looks like an empty one. */
export const emptyList = { data: [], next_cursor: null };
