import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { loadSession } from "./api/client.ts";
import { takeLink } from "./api/link.ts";
import { queries } from "./api/use-read.ts";
import { App } from "./app.tsx";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root");
const link = takeLink();
if (link === undefined) void loadSession();
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App link={link} />
    </QueryClientProvider>
  </StrictMode>,
);
