# docker buildx bake -f docker/bake.hcl [x86-64 | arm32v7 | arm64 | applications | ai], from the folder above.
group "default" {
  targets = ["x86-64", "arm32v7", "arm64"]
}

target "common" {
  context    = "."
  dockerfile = "docker/Dockerfile"
}

target "x86-64" {
  inherits  = ["common"]
  platforms = ["linux/amd64"]
  tags      = ["eeio"]
}

# With the servers of eeio-applications, which take as much again.
target "applications" {
  inherits  = ["common"]
  target    = "eeio-applications"
  platforms = ["linux/amd64"]
  tags      = ["eeio-applications"]
}

# With DLIO and PyTorch, which take twice as much.
target "ai" {
  inherits  = ["common"]
  target    = "eeio-ai"
  platforms = ["linux/amd64"]
  tags      = ["eeio-ai"]
}

target "arm32v7" {
  inherits  = ["common"]
  platforms = ["linux/arm/v7"]
  tags      = ["eeio:armv7"]
}

target "arm64" {
  inherits  = ["common"]
  platforms = ["linux/arm64"]
  tags      = ["eeio:arm64"]
}
