import { storageSchema } from "../../config/sections/server.ts";
import type { CopyPlace, CopyTarget } from "../../store/repositories/copy/copy-place.ts";
import { openPlace } from "../../store/postgres/connection/copy-place.ts";
import {
  openSource as openFile,
  openTarget as openNewFile,
} from "../../store/sqlite/connection/copy-place.ts";

type Storage = ReturnType<typeof storageSchema.parse>;

/** What a URL names; undefined if it is not one of a database. */
export function readStorage(url: string): Storage | undefined {
  return storageSchema.safeParse({ url }).data;
}

/** Throws `CopyRefused`. */
export async function openSource(storage: Storage): Promise<CopyPlace> {
  if (storage.backend === "sqlite") return openFile(storage.path);
  return openPlace(storage.url.reveal(), { isCreating: false });
}

/** Throws `CopyRefused`. */
export async function openTarget(storage: Storage): Promise<CopyTarget> {
  if (storage.backend === "sqlite") return openNewFile(storage.path);
  return openPlace(storage.url.reveal(), { isCreating: true });
}
