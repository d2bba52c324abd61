import type { OpenSessionView } from "../../api/contract.ts";
import { useSession } from "../../api/session.ts";
import { useChange } from "../../api/use-change.ts";
import { useList } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { Loaded } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useUser } from "../../shell/role.ts";

/** Browsers in which the user is signed in. */
export function Sessions() {
  const user = useUser();
  const session = useSession();
  const here = session.kind === "signed-in" ? session.session.id : null;
  const sessions = useList("/sessions", { user_id: user?.id, limit: 500 });
  const { run, isRunning, failure } = useChange("DELETE /sessions/{id}");
  const end = async (ended: readonly OpenSessionView[]): Promise<void> => {
    for (const { id } of ended) {
      const answer = await run(undefined, { id });
      if (!answer.ok && answer.failure.status !== 404) break;
    }
  };
  const columns: readonly Column<OpenSessionView>[] = [
    ["From", ({ address }) => address ?? "unknown"],
    ["Started", ({ created_at: at }) => <Time at={at} />],
    ["Last used", ({ last_seen_at: at }) => <Time at={at} isRelative />, "wide"],
    ["Ends at the latest", ({ expires_at: at }) => <Time at={at} />, "wide"],
    [
      "Actions",
      (row) =>
        row.id === here ? (
          <Badge tone="accent">this browser</Badge>
        ) : (
          <Button
            look="quiet"
            isBusy={isRunning}
            aria-label={`End the session from ${row.address ?? "unknown"}`}
            onPress={() => end([row])}
          >
            End
          </Button>
        ),
    ],
  ];
  return (
    <Loaded query={sessions.query}>
      {(rows) => {
        const others = rows.filter(({ id }) => id !== here);
        return (
          <>
            <p className="muted">
              {others.length === 0
                ? "You are signed in nowhere else."
                : "Do you not know one of them? End all others, then change your password."}
            </p>
            {others.length > 0 && (
              <Button isBusy={isRunning} onPress={() => end(others)}>
                End all others
              </Button>
            )}
            {failure !== undefined && <ErrorNote failure={failure} />}
            <Table caption="Sessions" columns={columns} rows={rows} idOf={({ id }) => id} />
          </>
        );
      }}
    </Loaded>
  );
}
