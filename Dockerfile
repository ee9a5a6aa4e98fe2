# An image of the server. docs/run/install.md explains how to run it; test/cluster/container.test.ts runs the files that it
# copies as process 1 of an unprivileged user with a read-only root.
ARG NODE_VERSION=24

FROM node:${NODE_VERSION}-bookworm AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-fund --no-audit
COPY . .
RUN npm run build && npm prune --omit=dev --no-fund --no-audit

FROM node:${NODE_VERSION}-bookworm-slim
WORKDIR /postbote
COPY --from=build /build/package.json /build/LICENSE ./
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/native-bindings/prebuilds native-bindings/prebuilds
COPY --from=build /build/dist/dashboard dist/dashboard
COPY --from=build /build/dist/src dist/src
COPY --from=build /build/dist/workers dist/workers
RUN ln -s /postbote/dist/src/main.js /usr/local/bin/postbote \
 && install -d -o 1000 -g 1000 -m 700 /data

# Inside of a container, 0.0.0.0 is only what the container's network and published ports reach.
ENV NODE_ENV=production POSTBOTE_DIR=/data POSTBOTE_ADMIN_IP_ADDRESS=0.0.0.0
VOLUME /data
EXPOSE 8081 8082
USER 1000:1000
ENTRYPOINT ["node", "/postbote/dist/src/main.js"]
CMD ["serve"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=150s \
  CMD ["node", "-e", "const cert = process.env.POSTBOTE_ADMIN_CERT; if (cert) process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; fetch((cert ? 'https' : 'http') + '://127.0.0.1:' + (process.env.POSTBOTE_ADMIN_PORT || 8082) + '/readyz').then((response) => process.exit(response.ok ? 0 : 1), () => process.exit(1))"]
