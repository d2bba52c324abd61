import { useUrl } from "../../url.ts";
import { Page } from "../../parts/page.tsx";
import { Views } from "../../parts/views.tsx";
import { OwnPassword } from "./own-password.tsx";
import { Sessions } from "./sessions.tsx";
import { Tokens } from "./tokens.tsx";

const views = [
  { value: "", label: "Tokens" },
  { value: "sessions", label: "Sessions" },
  { value: "password", label: "Password" },
];

/** Who acts for me? Everybody has it, for oneself only. */
export function AccessPage() {
  const [{ view }] = useUrl({ view: "" });
  return (
    <Page title="Access" question="Who acts for me?">
      <Views label="Kinds of access" views={views} />
      {view === "sessions" ? <Sessions /> : view === "password" ? <OwnPassword /> : <Tokens />}
    </Page>
  );
}
