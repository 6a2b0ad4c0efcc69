# docker buildx bake -f docker/bake.hcl [x86-64 | arm32v7 | arm64 | applications], from the folder above.
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
